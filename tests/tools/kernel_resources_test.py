"""tools/kernel_resources.py: what it reads in the words of ptxas."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

import kernel_resources

PTXAS = """
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z5spillPf' for 'sm_90'
ptxas info    : Function properties for _Z5spillPf
    200 bytes stack frame, 180 bytes spill stores, 184 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 200 bytes cumulative stack size
ptxas info    : Compiling entry function '_Z4fineIfEvT_' for 'sm_90'
ptxas info    : Function properties for _Z4fineIfEvT_
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 4096 bytes smem, 16 bytes cmem[0]
"""


class KernelResourcesTest(unittest.TestCase):
    def test_reads_every_kernel_with_its_spills(self):
        spill, fine = kernel_resources.parse("lib/a.cu", PTXAS, str)
        self.assertEqual(spill, ("lib/a.cu", "_Z5spillPf", 255, 200, 180, 184, 0))
        self.assertEqual(fine, ("lib/a.cu", "_Z4fineIfEvT_", 32, 0, 0, 0, 4096))

    def test_occupancy_is_bounded_by_registers_and_shared_memory(self):
        def occupancy(registers, shared):
            return kernel_resources.Kernel("", "", registers, 0, 0, 0, shared).occupancy
        self.assertEqual(occupancy(32, 0), 100)
        self.assertEqual(occupancy(33, 0), 75)  # 40 a thread are given: 51 warps, 12 blocks
        self.assertEqual(occupancy(255, 0), 12)  # 8 warps
        self.assertEqual(occupancy(32, 99 * 1024), 12)  # 2 blocks

    def test_occupancy_is_that_of_the_launch(self):
        def occupancy(name, registers):
            return kernel_resources.Kernel("", name, registers, 0, 0, 0, 256).occupancy
        self.assertEqual(occupancy("MlpLogits<tetrion::MlpPlan<256u, 32u> >", 96), 31)  # 5 blocks
        self.assertEqual(occupancy("MlpLogits<tetrion::MlpPlan<64u, 32u> >", 64), 47)  # 15 of 2
        self.assertEqual(occupancy("AdvanceRow", 16), 50)  # 32 blocks of a warp
        text = kernel_resources.table([kernel_resources.Kernel("a.cu", "DrawPictures", 28, 0, 0, 0,
                                                               23040)])
        self.assertIn("| a.cu | DrawPictures | 28 | 0 | 0 | 23040 | 0 | 384 | 94 % |", text)

    def test_a_name_is_shown_without_its_place_and_parameters(self):
        self.assertEqual(kernel_resources.short_name("_Z4fineIfEvT_"), "fine<float>")
        self.assertEqual(
            kernel_resources.short_name("_ZN7tetrion12_GLOBAL__N_1L4playEi"), "play")


if __name__ == "__main__":
    unittest.main()
