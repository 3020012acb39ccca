"""How a rule of tests/tidy is tested: on a made-up tree, {path: text}."""

import unittest


class RuleCase(unittest.TestCase):

    def refuses(self, rule, tree, count=1):
        """`rule` has `count` findings in `tree`, each with its place; returns them."""
        found = rule(tree)
        self.assertEqual(len(found), count, found)
        for finding in found:
            self.assertRegex(finding, r"^[^:]+:\d+: .")
        return found

    def passes(self, rule, tree):
        self.assertEqual(rule(tree), [])
