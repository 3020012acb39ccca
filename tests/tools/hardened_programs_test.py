"""Every program that is installed carries what makes a memory bug an end instead of a way in.

Usage: hardened_programs_test.py PROGRAM... (needs readelf, which comes with the compiler)
"""

import pathlib
import re
import subprocess
import sys
import unittest

PROGRAMS = []
# What an indirect call may land on, by -fcf-protection: the instruction endbr64.
LANDING_PAD = bytes.fromhex("f30f1efa")


def readelf(option, program):
    return subprocess.run(["readelf", "-W", option, program], capture_output=True, text=True,
                          check=True).stdout


def first_bytes_of_main(program):
    main = re.search(r"(?m)^\s*\d+: ([0-9a-f]+) .* main$", readelf("-s", program))
    code = re.search(r"\.text\s+PROGBITS\s+([0-9a-f]+) ([0-9a-f]+)", readelf("-S", program))
    at = int(main[1], 16) - int(code[1], 16) + int(code[2], 16)
    return pathlib.Path(program).read_bytes()[at:at + len(LANDING_PAD)]


class HardenedProgramsTest(unittest.TestCase):
    def every_program(self, holds):
        self.assertTrue(PROGRAMS, "no program was named")
        self.assertEqual([program for program in PROGRAMS if not holds(program)], [])

    def test_addresses_are_random_in_each_process(self):
        self.every_program(lambda program: re.search(r"Type:\s+DYN", readelf("-h", program)))

    def test_tables_of_functions_are_bound_at_the_start_and_read_only_after(self):
        self.every_program(lambda program: "BIND_NOW" in readelf("-d", program))
        self.every_program(lambda program: "GNU_RELRO" in readelf("-l", program))

    def test_no_stack_can_be_executed(self):
        self.every_program(lambda program: re.search(r"GNU_STACK.* RW ", readelf("-l", program)))

    def test_stacks_are_checked(self):
        self.every_program(lambda program: "__stack_chk_fail" in readelf("--dyn-syms", program))

    def test_sizes_of_copies_are_checked(self):
        self.every_program(lambda program: re.search(r"__(memcpy|printf|snprintf)_chk",
                                                     readelf("--dyn-syms", program)))

    def test_indices_of_containers_are_checked_somewhere(self):
        self.every_program(lambda program: "__glibcxx_assert_fail" in readelf("--dyn-syms",
                                                                              program))

    def test_functions_begin_where_an_indirect_call_may_land(self):
        self.every_program(lambda program: first_bytes_of_main(program) == LANDING_PAD)


if __name__ == "__main__":
    PROGRAMS = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
