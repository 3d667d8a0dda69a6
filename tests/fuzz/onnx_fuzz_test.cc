// Changed models of ONNX are imported or refused by an Error. What is imported computes or throws,
// between guards as with reuse (mutant_check.h).
//
//   bazel run --config=opt //tests/fuzz:onnx_fuzz_test -- --mutants=100000 --jobs=8
//   bazel run --config=opt //tests/fuzz:onnx_fuzz_test -- --mutant=123
//
// The second command says what one mutant is and does. docs/fuzzing.md
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/str_cat.h"
#include "framework/io/file.h"
#include "framework/onnx/exporters.h"
#include "framework/onnx/import.h"
#include "framework/onnx/model_file.h"
#include "tests/fuzz/fuzz_main.h"
#include "tests/fuzz/onnx_mutation.h"
#include "tests/fuzz/onnx_seeds.h"
#include "tests/harness/all_cases.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/temp_directory.h"
#include "tests/onnx/case_models.h"

namespace skiff::fuzz {
namespace {

// A file for each process that runs mutants.
InferenceModel Import(const std::string& bytes, const TempDirectory& directory, Scope* scope) {
  const std::string path = StrCat(directory.path(), "/", getpid(), ".onnx");
  AtomicWriteFile(path, bytes);
  return ImportOnnx(path, scope);
}

bool IsImported(const std::string& bytes, const TempDirectory& directory) {
  Scope scope;
  try {
    Import(bytes, directory, &scope);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// The first case of each op that has a form in ONNX, if the import has it, too; networks that
// PyTorch has exported; and, several times, since they are few, loops, branches and functions.
const std::vector<onnx::ModelProto>& Seeds() {
  static const std::vector<onnx::ModelProto>& seeds = *[] {
    auto* models = new std::vector<onnx::ModelProto>;
    const TempDirectory directory;
    std::set<std::string> types;
    for (const harness::OpCase& op_case : harness::AllCases()) {
      const bool has_form = onnx_export::ExporterTable::All().Find(op_case.type) != nullptr;
      if (!has_form || op_case.benchmark_only || !onnx_tests::HasPlainInputs(op_case)) continue;
      if (!types.insert(op_case.type).second) continue;
      const onnx_tests::CaseModel model =
          onnx_tests::MakeCaseModel(op_case, op_case.dtypes.front(), false);
      const std::string bytes = onnx_tests::ExportCase(model, {}).bytes;
      if (bytes.empty() || !IsImported(bytes, directory)) continue;
      models->push_back(ParseOnnxModel(bytes, op_case.type));
    }
    std::ranges::copy(OnnxModelsIn("tests/onnx/fixtures"), std::back_inserter(*models));
    for (int i = 0; i < 10; ++i) {
      std::ranges::copy(NestedOnnxModels(), std::back_inserter(*models));
    }
    return models;
  }();
  return seeds;
}

// Ones for what the program says it is fed, with 3 for a dim that it leaves open; nothing if they
// would be many.
std::optional<FeedList> FeedsOf(const InferenceModel& model) {
  constexpr int64_t kMost = 1 << 16;
  FeedList feeds;
  for (const std::string& name : model.feed_names) {
    const Var& var = *model.program->root()->GetVar(name);
    std::vector<int64_t> dims = var.dims;
    int64_t count = 1;
    for (int64_t& dim : dims) {
      if (dim < 0) dim = 3;
      if (dim > kMost || count * dim > kMost) return std::nullopt;
      count *= dim;
    }
    const harness::Array ones{.shape = Shape(dims),
                              .values = std::vector<double>(static_cast<size_t>(count), 1.0)};
    feeds.emplace_back(name, harness::ToTensor(ones, var.dtype));
  }
  return feeds;
}

MutantReport CheckImported(InferenceModel model, const Scope& scope) {
  const auto feeds = FeedsOf(model);
  if (!feeds) return {.end = MutantReport::End::kCompile};
  Mutant mutant;
  mutant.program = std::move(model.program);
  mutant.feeds = *feeds;
  mutant.fetches = model.fetch_names;
  mutant.feeds_are_changed = true;
  Seed seed{.name = "onnx",
            .program = mutant.program,
            .variables = {},
            .feeds = *feeds,
            .fetches = mutant.fetches};
  for (const std::string& name : scope.Names()) seed.variables[name] = scope.Get(name);
  mutant.seed = &seed;
  return CheckMutant(mutant);
}

MutantReport CheckOnnxMutant(const TempDirectory& directory, const OnnxMutant& mutant) {
  Scope scope;
  InferenceModel model;
  try {
    model = Import(mutant.bytes, directory, &scope);
  } catch (const Error&) {
    return {.end = MutantReport::End::kCodec,
            .problem = scope.Names().empty() ? "" : "a refused import has changed the scope"};
  } catch (const std::exception& error) {
    return {.end = MutantReport::End::kCodec, .problem = StrCat("threw: ", error.what())};
  }
  return CheckImported(std::move(model), scope);
}

TEST(OnnxFuzz, SeedsCompute) {
  const TempDirectory directory;
  EXPECT_GT(Seeds().size(), 100u);
  for (const onnx::ModelProto& seed : Seeds()) {
    const MutantReport report = CheckOnnxMutant(directory, {seed.SerializeAsString(), {}});
    EXPECT_NE(report.end, MutantReport::End::kCodec) << seed.graph().node(0).op_type();
    EXPECT_EQ(report.problem, "") << seed.graph().node(0).op_type();
  }
}

TEST(OnnxFuzz, MutantsAreImportedOrRefused) {
  const TempDirectory directory;
  if (const auto number = OnlyMutant()) {
    const OnnxMutant mutant = MakeOnnxMutant(Seeds(), *number);
    for (const std::string& change : mutant.changes) std::cout << change << "\n";
    AtomicWriteFile("mutant.onnx", mutant.bytes);
    const MutantReport report = CheckOnnxMutant(directory, mutant);
    std::cout << "wrote mutant.onnx; end " << static_cast<int>(report.end) << " " << report.problem
              << "\n";
    return;
  }
  const FuzzResult result = RunMutantsOfFlags(
      [&](uint64_t number) { return CheckOnnxMutant(directory, MakeOnnxMutant(Seeds(), number)); },
      "the import");
  // Both ends are common, or the mutants try nothing.
  EXPECT_GT(result.ends[0], result.tried / 10);
  EXPECT_GT(result.ends[4], result.tried / 10);
}

}  // namespace
}  // namespace skiff::fuzz
