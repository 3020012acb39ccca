"""executed_kernels.py: what it reads as a kernel, and what it takes as run. With a program of the
tree's own (cuda_backend_test_sim) it sees kernels that run and one that does not."""

import sys
import unittest

import check
import executed_kernels

SOURCE = """
#define __global__ inline
// A comment with __global__ void NotAKernel() {}
template <typename T>
__global__ void Fill(T* out,
                     int n) {
}
__global__ void __launch_bounds__(256) Bounded(int n) {
}
static __global__ __launch_bounds__(64)
void Split(int n)
{
}
"""
PROGRAM = None


class ExecutedKernelsTest(unittest.TestCase):

    def kernels(self, text, path="lib/a/b.cu"):
        defined, found = executed_kernels.kernels({path: text})
        self.assertEqual(found, [])
        return defined

    def test_finds_kernels_and_no_others(self):
        self.assertEqual([(kernel.name, kernel.line) for kernel in self.kernels(SOURCE)],
                         [("Fill", 5), ("Bounded", 8), ("Split", 10)])
        self.assertEqual(self.kernels(SOURCE, "tests/lib/a/b.cu"), [])

    def test_a_kernel_that_it_cannot_read_is_a_finding(self):
        _, found = executed_kernels.kernels({"lib/a/b.cu": "__global__ auto K() -> void {}"})
        self.assertEqual(len(found), 1, found)

    def test_a_kernel_that_did_not_run_is_a_finding(self):
        fill, bounded, split = self.kernels(SOURCE)
        seen = {("/build/tree/lib/a/b.cu", fill.name), ("/build/tree/lib/a/b.cu", split.name),
                ("/build/tree/lib/a/other.cu", bounded.name)}
        found = executed_kernels.findings([fill, bounded, split], seen, {})
        self.assertEqual(len(found), 1, found)
        self.assertRegex(found[0], r"^lib/a/b.cu:8: Bounded runs in no test")

    def test_names_are_without_namespaces_and_types(self):
        for function, name in (("a::(anonymous namespace)::Run(a::Span<float>, int)", "Run"),
                               ("void a::Sum<a::(anonymous namespace)::X>(int)", "Sum"),
                               ("Plain()", "Plain")):
            self.assertEqual(executed_kernels.plain_name(function), name)

    def test_an_excuse_excuses_until_the_kernel_runs(self):
        fill, *_ = self.kernels(SOURCE)
        excused = {("lib/a/b.cu", "Fill"): "a reason"}
        self.assertEqual(executed_kernels.findings([fill], set(), excused), [])
        seen = {("/tree/lib/a/b.cu", fill.name)}
        self.assertIn("needs no excuse", executed_kernels.findings([fill], seen, excused)[0])

    def test_sees_what_a_program_ran(self):
        good, bad = "tests/lib/cuda/good_kernels.cuh", "tests/lib/cuda/sim/bad_kernels.cuh"
        tree = {path: text for path, text in check.read_tree().items() if path in (good, bad)}
        defined, _ = executed_kernels.kernels(tree, ("tests",))
        found = executed_kernels.findings(defined, executed_kernels.executed([PROGRAM]), {})
        self.assertEqual({kernel.path for kernel in defined}, {good, bad})
        # It runs all of the good ones and none of the others.
        self.assertEqual({finding.split(":")[0] for finding in found}, {bad})
        self.assertEqual(len(found), sum(kernel.path == bad for kernel in defined))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop()
    unittest.main()
