"""Every rule of house_rules.py refuses what it exists to refuse, and nothing else."""

import unittest
from unittest import mock

import house_rules
import layers
from rule_case import RuleCase

CLASS = "namespace tetrion {\nclass A {\n  void F();\n};\n}\n"
MEMBER = "namespace tetrion {\nvoid A::F() {\n}\n}\n"


class HouseTest(RuleCase):

    def test_class_sources(self):
        header = {"lib/core/a.h": CLASS}
        self.refuses(house_rules.class_sources, {**header, "lib/core/a_more.cc": MEMBER})
        self.refuses(house_rules.class_sources, {**header, "services/actor/b.cc": MEMBER})
        nested = MEMBER.replace("A::F", "A::Impl::F")
        self.refuses(house_rules.class_sources, {**header, "lib/core/a_impl.cc": nested})
        inner = "namespace tetrion::actor {\nvoid A::F() {\n}\n}\n"
        self.refuses(house_rules.class_sources, {**header, "services/actor/b.cc": inner})
        self.passes(house_rules.class_sources, {**header, "lib/core/a.cc": MEMBER})
        self.passes(house_rules.class_sources, {**header, "lib/core/b.cc": CLASS + MEMBER})
        self.passes(house_rules.class_sources, {
            **header, "lib/core/b.cc": "namespace tetrion {\nint F() { return A::G(); }\n}\n"})

    def test_class_sources_may_be_excused_but_no_excuse_may_be_stale(self):
        excuse = {("lib/core/a_more.cc", "A"): "reason"}
        with mock.patch.object(house_rules, "SECOND_SOURCES", excuse):
            self.passes(house_rules.class_sources, {"lib/core/a.h": CLASS,
                                                    "lib/core/a_more.cc": MEMBER})
            stale = self.refuses(house_rules.class_sources, {"lib/core/a.h": CLASS,
                                                             "lib/core/a_more.cc": ""})
            self.assertIn("needs no excuse", stale[0])
            self.passes(house_rules.class_sources, {"lib/core/a.h": CLASS})
            self.refuses(house_rules.class_sources, {"lib/core/a.h": CLASS, house_rules.HERE: ""})

    def test_type_names(self):
        self.refuses(house_rules.type_names, {"lib/core/a.h": CLASS, "services/actor/b.h": CLASS})
        self.refuses(house_rules.type_names, {
            "lib/core/a.h": CLASS, "services/actor/b.cc": "namespace tetrion { enum class A {}; }"})
        other = CLASS.replace("namespace tetrion", "namespace tetrion::actor")
        self.passes(house_rules.type_names, {
            "lib/core/a.h": CLASS, "services/actor/b.h": other,
            "lib/core/c.h": "namespace tetrion {\nclass A;\nstruct B { struct A {}; };\n}\n",
            "lib/core/d.cc": "namespace tetrion {\nnamespace {\nstruct A {};\n}\n}\n",
            "tests/lib/core/a_test.cc": CLASS})

    def test_product_users(self):
        header = {"lib/core/a.h": "// Used()\nint Used(int a);\nint Unused();\n"}
        uses = {"lib/core/b.cc": "int x = Used(1); // Unused()\n"}
        self.refuses(house_rules.product_users, {
            **header, **uses, "tests/lib/core/a_test.cc": "int x = Unused();\n"})
        self.passes(house_rules.product_users, {
            **header, **uses, "python/src/a_bind.cc": "int x = Unused();\n"})
        self.passes(house_rules.product_users, {
            **header, **uses, "lib/core/a.cc": "int Unused() { return 1; }\nint x = Unused();\n"})

    def test_product_users_of_names_in_lower_case(self):
        for unused in ("  int unused_one() const { return 1; }\n", "  const A& unused_one(int);\n",
                       "  static int* unused_one();\n", "  std::vector<int> unused_one() const;\n"):
            self.refuses(house_rules.product_users, {"lib/core/a.h": unused})
            self.passes(house_rules.product_users, {
                "lib/core/a.h": unused, "tools/up/b.cc": "int x = a.unused_one();\n"})
        for other in ("  int f_one() override;\n", "  A() : f_one(1) {}\n", "  return f_one(2);\n",
                      "  if (f_one(1)) throw std::f_two(3);\n"):
            self.passes(house_rules.product_users, {"lib/core/a.h": other})

    def test_product_users_has_no_stale_excuse(self):
        with mock.patch.object(house_rules, "WITHOUT_PRODUCT_USER",
                               {("lib/core/a.h", "Unused"): "reason"}):
            self.passes(house_rules.product_users, {"lib/core/a.h": "int Unused();\n"})
            self.refuses(house_rules.product_users, {"lib/core/a.h": "int Other_;\n"})

    def test_recorded_metrics(self):
        catalog = {"lib/metrics/catalog.h": 'constexpr A kCatalog = {G("tetrion_a"),\n'
                                            'G("tetrion_b")};\n'}
        recorded = {"services/actor/a.cc": 'r.Counter("tetrion_a");\n'}
        with mock.patch.object(house_rules, "UNRECORDED", {}):
            self.refuses(house_rules.recorded_metrics, {**catalog, **recorded})
            self.refuses(house_rules.recorded_metrics, {
                **catalog, **recorded, "services/actor/b.h": '// "tetrion_b"\n',
                "tests/a_test.cc": '"tetrion_b"'})
            self.passes(house_rules.recorded_metrics, {
                **catalog, **recorded, "lib/metrics/b.h": 'f("tetrion_b");\n'})
        with mock.patch.object(house_rules, "UNRECORDED", {"tetrion_b": "reason"}):
            self.passes(house_rules.recorded_metrics, {**catalog, **recorded})
            self.refuses(house_rules.recorded_metrics, {
                **catalog, **recorded, "lib/metrics/b.h": 'f("tetrion_b");\n'})
        with mock.patch.object(house_rules, "UNRECORDED", {"tetrion_c": "reason"}):
            self.refuses(house_rules.recorded_metrics, {**catalog, **recorded}, count=2)

    def test_read_settings(self):
        header = "lib/rl/vtrace/vtrace_settings.h"
        tree = {header: "struct VtraceSettings {\n  static constexpr int kWindow = 1;\n"
                        "  double clip = 1;\n  bool operator==(const A&) const = default;\n};\n"
                        'v.Number("clip", clip);\n'}
        trainer = "lib/rl/vtrace/vtrace_trainer.cc"
        for code in ("config.settings.clip = 3;", "f({.clip = 1});", "coefficients.clip;",
                     "// settings.clip", ""):
            found = self.refuses(house_rules.read_settings, {**tree, trainer: code + "\n"})
            self.assertTrue(found[0].startswith(f"{header}:3: nothing reads the setting clip"))
        self.refuses(house_rules.read_settings,
                     {**tree, "lib/rl/dreamer/a.cc": "f(settings.clip);\n",
                      "tests/lib/rl/vtrace/a_test.cc": "f(settings.clip);\n"})
        self.passes(house_rules.read_settings, {**tree, trainer: "f(config_.settings.clip);\n"})
        self.passes(house_rules.read_settings, {**tree, trainer: "if (settings.clip == 1) f();\n"})
        self.passes(house_rules.read_settings,
                    {**tree, "services/learner/a.cc": "f(run.vtrace.clip);\n"})

    def test_layers_used(self):
        tree = {"lib/core/a.h": "", "lib/shm/b.h": '#include "lib/core/a.h"\n'}
        table = (layers.Layer("core", "", ()), layers.Layer("shm", "", ("core",)))
        with mock.patch.multiple(layers, LAYERS=table, EXTRA={}, PLANNED={}):
            self.passes(house_rules.layers_used, tree)
            self.refuses(house_rules.layers_used, {**tree, "lib/shm/b.h": ""})
            self.refuses(house_rules.layers_used, {"lib/core/a.h": ""})
        with mock.patch.multiple(layers, LAYERS=table, EXTRA={}, PLANNED={"core": "later"}):
            self.refuses(house_rules.layers_used, tree)
            self.passes(house_rules.layers_used, {"lib/shm/b.h": ""})
        with mock.patch.multiple(layers, LAYERS=table, EXTRA={}, PLANNED={},
                                 PLANNED_EDGES={("shm", "core"): "later"}):
            self.passes(house_rules.layers_used, {**tree, "lib/shm/b.h": ""})
            self.refuses(house_rules.layers_used, tree)
        with mock.patch.multiple(layers, LAYERS=table, PLANNED={},
                                 EXTRA={"lib/shm/b": (("nn",), "reason")}):
            self.refuses(house_rules.layers_used, tree)

    def test_packages(self):
        for call in ("find_package(Unheard REQUIRED)", "  pkg_check_modules(unheard REQUIRED a)",
                     "if(A) find_package( Unheard)"):
            self.refuses(house_rules.packages, {"lib/core/CMakeLists.txt": f"{call}\n"})
        self.passes(house_rules.packages, {
            "cmake/a.cmake": "find_package(spdlog REQUIRED)\npkg_check_modules(libzmq REQUIRED)\n"
                             "# find_package(Unheard)\nfind_package_handle_standard_args(Unheard)\n"
                             "find_package(Threads REQUIRED)\n"})

    def test_environment_names(self):
        entries = {"lib/envs/tetris/tetris.cc": 'entry.name = "tetris";\ne.name = "tetris-two";\n'
                                                'entry.name = "tetris-two";\n',
                   "lib/envs/snake/snake.cc": '  entry.name = "snake";\n// entry.name = "chess"\n'}
        for path, line in (("services/actor/a.cc", 'e == "tetris-two";\n'),
                           ("lib/vector/a.h", 'e == "snake"\n'),
                           ("lib/envs/registry.cc", 'entry == "tetris"\n')):
            found = self.refuses(house_rules.environment_names, {**entries, path: line})
            self.assertTrue(found[0].endswith("; ask lib/envs/registry.h"), found)
        self.passes(house_rules.environment_names, {
            **entries, "tests/a_test.cc": '"tetris"',
            "lib/core/a.cc": '// "tetris"\nf("tetris.h", "the tetris", "chess");\n'})
        self.refuses(house_rules.environment_names,
                     {**entries, "tools/eval/linear_policy.cc": ""})  # stale

    def test_one_thread_tests(self):
        cmake = "tetrion_cuda_test(a_test ONE_THREAD\n  SRCS cuda/a_test.cu LIBS a)\n"
        path = "tests/lib/a/CMakeLists.txt"
        for code in ("std::thread t(f);", "std::vector<std::thread> all;", "std::async(f);",
                     '#include "lib/core/agent.h"'):
            test = {"tests/lib/a/cuda/a_test.cu": code + "\n"}
            self.refuses(house_rules.one_thread_tests, {path: cmake, **test})
            self.passes(house_rules.one_thread_tests,
                        {path: cmake.replace("ONE_THREAD", ""), **test})
        self.passes(house_rules.one_thread_tests, {
            path: cmake, "tests/lib/a/cuda/a_test.cu": "std::this_thread::yield();\n"})


if __name__ == "__main__":
    unittest.main()
