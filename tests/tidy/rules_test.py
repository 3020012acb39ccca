"""Every rule of tests/tidy must refuse what it exists to refuse and pass what it should pass."""

import json
import pathlib
import tempfile
import unittest
from unittest import mock

import clang
import layers
import rules
import source
from rule_case import RuleCase


def lines_of(count):
    return "".join(f"  x += {i};\n" for i in range(count))


class SourceTest(unittest.TestCase):

    def test_comments_and_strings_are_blanked_and_lines_kept(self):
        code = source.code_only('a // rand()\n/* sleep(1)\n */ "system(" + R"(x\n)y" b\n')
        self.assertNotIn("rand", code)
        self.assertNotIn("sleep", code)
        self.assertNotIn("system", code)
        self.assertIn("b\n", code)

    def test_digit_separators_are_no_characters(self):
        self.assertIn("rand()", source.code_only("int a = 1'000'000; rand(); int b = 2'000;"))

    def test_includes_in_comments_do_not_count(self):
        text = '#include <a.h>\n// #include <b.h>\n/*\n#include <c.h>\n*/\n  #  include "d/e.h"\n'
        self.assertEqual([(i.path, i.line, i.quoted) for i in source.includes(text)],
                         [("a.h", 1, False), ("d/e.h", 6, True)])

    def test_functions_are_measured_from_signature_to_brace(self):
        text = ("namespace a {\nclass B {\n public:\n  int Get() const { return 1; }\n};\n"
                "int Long(int a,\n         int b) {\n  if (a) {\n    b = 1;\n  }\n  return b;\n}\n"
                "constexpr A kTable[] = {\n{1},\n{2}};\nTEST(Suite, Case) {\n}\n}\n")
        self.assertEqual([(f.name, f.line, f.lines) for f in source.functions(text)],
                         [("Get", 4, 1), ("Long", 6, 7), ("TEST", 16, 2)])

    def test_constructors_with_initialisers_and_macros_are_functions(self):
        text = ("#define M(x) do { \\\n  } while (0)\n"
                "Foo::Foo(int a)\n    : a_(a), b_{2} {\n  Run();\n}\n"
                "Foo::Foo() : b_{2}, a_(1) {\n}\n")
        self.assertEqual([(f.name, f.line, f.lines) for f in source.functions(text)],
                         [("Foo::Foo", 3, 4), ("Foo::Foo", 7, 2)])

    def test_entries_of_a_table_are_no_functions(self):
        text = "constexpr std::array kTable = {\n    Entry(1, {2}, 3),\n    Entry(4, {5}, 6),\n};\n"
        self.assertEqual(source.functions(text + "void F() {}\n")[0].name, "F")

    def test_odd_text_is_no_function_and_no_crash(self):
        self.assertEqual(source.functions("x) { y }\n}}}{{{ ( ) {\n"), [])

    def test_types_and_members_are_found_in_their_namespaces(self):
        text = ("namespace a::b {\nenum class [[nodiscard]] E : int { kX };\n"
                "template <typename T>\nclass C final : public D<T> {\n  struct In {};\n};\n"
                "struct C<int>::Impl { int x; };\nnamespace {\nclass Own {};\n}\n"
                "std::vector<X::Y> C<int>::Get(int a) const { return {a}; }\n"
                "C::~C() { struct L {}; }\nC::operator bool() const { return true; }\n"
                "C::C(int a)\n    : a_{a}, b_(2) {\n  Run();\n}\nX Free(A::B c) {}\n}\n"
                "class Ahead;\nstruct Plain {};\n")
        self.assertEqual(
            [(d.namespace, d.name, d.is_type) for d in source.declared(text)],
            [("a::b", "E", True), ("a::b", "C", True), ("a::b", "C::Impl", True),
             ("a::b::-", "Own", True), ("a::b", "C::Get", False), ("a::b", "C::~C", False),
             ("a::b", "C::operator", False), ("a::b", "C::C", False), ("a::b", "Free", False),
             ("", "Plain", True)])

    def test_comments_alone_keep_their_places(self):
        self.assertEqual(source.comments_only('a("// b") // c\n'), " " * 10 + "// c\n")

    def test_a_class_with_a_macro_attribute_is_no_function(self):
        text = 'class CAPABILITY("mutex") Mutex {\n public:\n  void Lock() { mu_.lock(); }\n};\n'
        self.assertEqual([f.name for f in source.functions(text)], ["Lock"])


class ClangTest(unittest.TestCase):

    def test_a_compile_command_becomes_one_that_only_reads(self):
        command = clang.clang_command({"command": "cmake -E env A=b /usr/bin/ccache /usr/bin/c++ "
                                       "-I'/a b' -std=gnu++20 -fsanitize=thread -MD -MT x.o -MF "
                                       "x.o.d -o x.o -c /s/x.cc"})
        self.assertEqual(command[:4], ["clang++-14", "-I/a b", "-std=gnu++20", "/s/x.cc"])
        self.assertIn("-fsyntax-only", command)
        self.assertIn("-Wthread-safety", command)

    def test_files_that_are_compiled_together_are_read_one_by_one(self):
        with tempfile.TemporaryDirectory() as build:
            together = pathlib.Path(build, "Unity", "unity_0_cxx.cxx")
            together.parent.mkdir()
            together.write_text('/* generated */\n\n#include "/s/a.cc"\n\n#include "/s/b.cc"\n',
                                encoding="utf-8")
            commands = [{"directory": "/b", "file": str(path), "command": f"c++ -O2 -c {path}"}
                        for path in (together, "/s/c.cc")]
            pathlib.Path(build, "compile_commands.json").write_text(json.dumps(commands),
                                                                    encoding="utf-8")
            self.assertEqual([(entry["file"], entry["command"])
                              for entry in clang.compile_commands(build)],
                             [(f"/s/{name}.cc", f"c++ -O2 -c /s/{name}.cc") for name in "abc"])


class RuleTest(RuleCase):

    def test_layering(self):
        self.refuses(rules.layering, {"lib/core/a.h": '#include "lib/frame/token.h"\n'})
        self.refuses(rules.layering, {"lib/replay/a.cc": '#include "lib/metrics/catalog.h"\n'})
        self.refuses(rules.layering, {"lib/core/a.h": '#include "services/actor/actor.h"\n'})
        self.refuses(rules.layering, {"services/actor/a.h": '#include "services/learner/b.h"\n'})
        self.refuses(rules.layering, {"services/common/a.h": '#include "services/actor/b.h"\n'})
        self.passes(rules.layering, {"services/actor/a.h": '#include "services/common/b.h"\n'})
        self.refuses(rules.layering, {"lib/shm/a.h": '#include "tests/support/b.h"\n'})
        self.refuses(rules.layering, {"lib/policy/random_policy.cc": '#include "lib/nn/mlp.h"\n'})
        self.refuses(rules.layering, {"lib/unheard_of/a.h": ""})
        self.passes(rules.layering, {
            "lib/policy/network_policy.cc": '#include "lib/nn/mlp.h"\n',
            "lib/frame/a.h": '#include "lib/core/check.h"\n#include "lib/frame/token.h"\n',
            "services/actor/a.cc": '#include "services/actor/a.h"\n#include "lib/wire/codec.h"\n'})

    def test_the_layer_table_has_no_cycle(self):
        known = []
        for layer in layers.LAYERS:
            self.assertLessEqual(set(layer.may_include), set(known), layer.folder)
            known.append(layer.folder)

    def test_walls(self):
        for header in ("zmq.hpp", "zmq.h", "flatbuffers/flatbuffers.h", "torch/torch.h",
                       "boost/interprocess/mapped_region.hpp", "prometheus/registry.h",
                       "httplib.h", "sqlite3.h", "CLI/CLI.hpp", "toml++/toml.h",
                       "spdlog/spdlog.h", "c10/util/Exception.h", "nlohmann/json.hpp",
                       "xxhash.h", "benchmark/benchmark.h", "iceoryx_posh/popo/sample.hpp"):
            self.refuses(rules.walls, {"lib/collect/a.h": f"#include <{header}>\n"})
            self.refuses(rules.walls, {"tests/lib/collect/a_test.cc": f"#include <{header}>\n"})
        self.refuses(rules.walls, {"services/learner/ingest.cc": "#include <torch/torch.h>\n"})
        for header in ("gtest/gtest.h", "gmock/gmock.h", "rapidcheck.h", "rapidcheck/gtest.h"):
            self.refuses(rules.walls, {"lib/collect/a.h": f"#include <{header}>\n"})
            self.passes(rules.walls, {"tests/lib/collect/a_test.cc": f"#include <{header}>\n"})
        self.passes(rules.walls, {
            "lib/wire/socket.cc": "#include <zmq.hpp>\n",
            "tests/lib/wire/socket_test.cc": "#include <zmq.hpp>\n",
            "lib/core/log.h": "#include <spdlog/spdlog.h>\n",
            "bench/shm/ring_bench.cc": "#include <zmq.hpp>\n",
            "lib/collect/a.h": "#include <vector>\n// #include <zmq.hpp>\n"})

    def test_torch_free(self):
        chain = {"lib/nn/mlp.h": "#include <torch/torch.h>\n",
                 "lib/rl/a.h": '#include "lib/nn/mlp.h"\n'}
        self.refuses(rules.torch_free, {
            **chain, "services/coordinator/ledger.cc": '#include "lib/rl/a.h"\n'})
        self.refuses(rules.torch_free, {**chain, "lib/frame/a.cu": '#include "lib/nn/mlp.h"\n'})
        self.refuses(rules.torch_free, {"lib/frame/a.cu": "#include <torch/extension.h>\n"})
        self.passes(rules.torch_free, {**chain, "services/learner/a.cc": '#include "lib/rl/a.h"\n'})

    def test_includes_resolve(self):
        self.refuses(rules.includes_resolve, {"lib/core/a.cc": '#include "check.h"\n'})
        self.passes(rules.includes_resolve, {
            "lib/core/a.cc": '#include "lib/core/a.h"\n#include "proto/control_generated.h"\n'
                             '#include "generated/revision.h"\n',
            "lib/core/a.h": ""})

    def test_function_length(self):
        limit = rules.MAX_FUNCTION_LINES
        self.refuses(rules.function_length,
                     {"lib/a/a.cc": "int F() {\n" + lines_of(limit - 1) + "}\n"})
        self.refuses(rules.function_length,
                     {"tests/a_test.cc": "TEST(A, B) {\n" + lines_of(limit) + "}\n"})
        self.passes(rules.function_length,
                    {"lib/a/a.cc": "int F() {\n" + lines_of(limit - 2) + "}\n"})

    def test_line_length(self):
        self.refuses(rules.line_length, {"lib/a/a.h": "x" * 101 + "\n"})
        self.refuses(rules.line_length, {"tetrion": "#" * 101 + "\n"})
        self.refuses(rules.line_length, {"a_test.cc": 'R"(a\n)" + x;\n' + "y" * 101 + "\n"})
        wide = "x" * 101 + "\n" + "y" * 101
        self.passes(rules.line_length, {"a_test.cc": f'f(R"({wide})");\n'})
        self.passes(rules.line_length, {"lib/a/a.h": "ä" * 100 + "\n", "README.md": "x" * 300})

    def test_file_length(self):
        self.refuses(rules.file_length, {"lib/a/a.cc": "\n" * 401})
        self.passes(rules.file_length, {"lib/a/a.cc": "\n" * 400, "tests/a_test.cc": "\n" * 500})

    def test_long_headers_are_reported(self):
        self.refuses(rules.long_headers, {"lib/a/a.h": "\n" * 151})
        self.passes(rules.long_headers, {"lib/a/a.h": "\n" * 150})

    def test_banned_calls(self):
        for call in ("std::rand()", "srand(1)", "rand ()", "usleep(10)", "sleep(1)", "::sleep(1)",
                     "system(\"ls\")", "std::system(s)", "printf(\"x\")", "std::fprintf(stderr)",
                     "std::atomic_thread_fence(x)", "std::chrono::system_clock::now()",
                     "clock_gettime(CLOCK_REALTIME, &t)", "gettimeofday(&t, nullptr)",
                     "std::mutex mu", "std::condition_variable cv", "std::jthread t",
                     "torch::load(m, p)", "std::thread::hardware_concurrency()",
                     "ftruncate(fd, 1)", "thread_local int n = 0", "thread_local T* p = nullptr",
                     "thread_local bool b"):  # one finding each
            self.refuses(rules.banned, {"lib/shm/a.cc": f"void F() {{ {call}; }}\n"})
        for call in ("unlink(p)", "::unlink(p)", "std::remove(p)", "fs::remove(p)"):
            self.refuses(rules.banned, {"services/learner/a.cc": f"void F() {{ {call}; }}\n"})
        for figure in ('h.stats = {{"x", 1}}', 's.push_back(wire::Stat{"x", 1})',
                       'stats.push_back({"x", 1})', 'stats.emplace_back("x", 1)'):
            self.refuses(rules.banned, {"services/actor/a.cc": f"void F() {{ {figure}; }}\n"})
        self.refuses(rules.banned, {"tests/a_test.cc": "using namespace std;\n"})
        for path in ("lib/replay/a.cu", "lib/cuda/a.cuh", "tests/lib/a_test.cu"):
            self.refuses(rules.banned, {path: "void F() { kernel<<<1, 32>>>(x); }\n"})
        self.refuses(rules.banned, {"lib/shm/a.h": "#include <format>\n"})
        self.passes(rules.banned, {
            "lib/shm/a.cc": "posix_fallocate(fd, 0, n); ftruncate(fd, n); std::snprintf(b, 1); "
                            "x.system(1); nanosleep(a); file_system(1); Mutex mu; operand();\n"
                            "thread_local int n = -1;\n"
                            "// printf(\nconst char* s = \"sleep(1)\";\n",
            "lib/shm/b.cc": "unlink(p);", "lib/stream/a.cc": "ring.Unlink(); set.remove(1);",
            "tests/a_test.cc": "std::mutex mu; printf(\"x\"); ftruncate(fd, 1);\n"})

    def test_every_allowed_exception_is_still_needed(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        for (path, name), reason in rules.BANNED_ALLOWED.items():
            self.assertIn(name, [rule[0] for rule in rules.BANNED], path)
            self.assertTrue(reason)
            self.assertTrue((root / path).exists(), path)
        self.refuses(rules.banned, {"lib/core/mutex.h": "int x;\n"})
        self.passes(rules.banned, {"lib/core/mutex.h": "std::mutex mu;\n"})

    def test_marks(self):
        for word in ("TO" + "DO", "FIX" + "ME", "X" * 3):
            self.refuses(rules.marks, {"lib/a/a.h": f"// {word}(someone): later\n"})
        self.passes(rules.marks, {"lib/a/a.cc": 'mkstemp("/tmp/XXXXXX"); // to do it well\n'})

    def test_pragma_once(self):
        self.refuses(rules.pragma_once, {"lib/a/a.h": "#ifndef A\n#define A\n#endif\n"})
        self.passes(rules.pragma_once, {"lib/a/a.h": "// What it is.\n#pragma once\n"})

    def test_twins(self):
        self.refuses(rules.twins, {"lib/shm/region.cc": ""})
        self.refuses(rules.twins, {"lib/shm/region.cc": "",
                                   "tests/lib/shm/bell_test.cc": '#include "lib/shm/bell.h"\n'})
        for test, text in (("tests/lib/shm/region_file_test.cc", ""),
                           ("tests/lib/shm/region_test.cc", ""),
                           ("tests/lib/shm/all_test.cc", '#include "lib/shm/region_file.h"\n')):
            self.passes(rules.twins, {"lib/shm/region_file.cc": "", test: text})

    def test_twins_may_be_excused_but_no_excuse_may_be_stale(self):
        with mock.patch.object(rules, "NO_TWIN", {"lib/shm/only_main.cc": "reason"}):
            self.passes(rules.twins, {"lib/shm/only_main.cc": ""})
            self.refuses(rules.twins, {"lib/shm/only_main.cc": "",
                                       "tests/lib/shm/only_main_test.cc": ""})
        self.refuses(rules.twins, {"lib/envs/views/planes.cc": ""})  # the named test is missing
        self.passes(rules.twins, {"lib/envs/views/planes.cc": "",
                                  "tests/lib/envs/views/views_test.cc": ""})

    def test_twins_has_no_line_of_a_file_that_is_gone(self):
        lines = len({**rules.NO_TWIN, **rules.TESTED_BY, **rules.NO_PRAGMA_ONCE})
        self.refuses(rules.twins, {rules.HERE: ""}, count=lines)

    def test_links(self):
        self.refuses(rules.links, {"README.md": "[x](docs/GONE.md)\n"})
        self.refuses(rules.links, {"docs/a.md": "![x](pictures/p.png)\n"})
        self.refuses(rules.links, {"README.md": "[x](#gone)\n# Here\n"})
        page = {"docs/a.md": "[up](../README.md)\n# A\n## Where `b`, [c](../README.md): d-e?\n"
                             "```\n# no heading\n```\n## A\n"}
        for anchor in ("gone", "no-heading", "a-2", "A", "where-b"):
            found = self.refuses(rules.links, {**page, "README.md": f"[x](docs/a.md#{anchor})\n"})
            self.assertIn(f"#{anchor}: docs/a.md has no such heading", found[0])
        self.passes(rules.links, {
            **page, "README.md": "[x](docs/a.md#where-b-c-d-e) [y](https://e.org#z) [z](docs) "
                                 "[a](docs/a.md#a-1) [b](#over-there) [c](b.cc#L3)\n# Over there\n",
            "b.cc": ""})

    def test_documented_layers(self):
        tree = {"lib/core/a.h": "", "lib/shm/b.h": ""}
        table = layers.markdown({"core", "shm"})
        self.refuses(rules.documented_layers, tree)
        self.refuses(rules.documented_layers, {
            **tree, "docs/ARCHITECTURE.md": table.replace("| core |", "| kern |", 1)})
        self.refuses(rules.documented_layers, {
            **tree, "lib/wire/c.h": "", "docs/ARCHITECTURE.md": table})
        self.passes(rules.documented_layers, {
            **tree, "docs/ARCHITECTURE.md": f"# A\n{table}\nmore\n"})

    def test_every_rule_has_a_test(self):
        here = pathlib.Path(__file__).resolve().parent
        tests = "".join((here / name).read_text(encoding="utf-8")
                        for name in ("rules_test.py", "house_test.py", "prose_test.py"))
        for rule in rules.ENFORCED + rules.REPORTED:
            self.assertIn(f"def test_{rule.__name__}", tests)

    def test_every_rule_is_registered_with_ctest(self):
        here = pathlib.Path(__file__).resolve().parent
        registered = (here / "CMakeLists.txt").read_text(encoding="utf-8")
        for rule in rules.ENFORCED:
            self.assertRegex(registered, rf"\b{rule.__name__}\b")


if __name__ == "__main__":
    unittest.main()
