// Every operator of Skiff is documented, runs on the CPU and is tested.
#include "framework/op/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/str_cat.h"
#include "framework/op/infer_outputs.h"
#include "tests/harness/all_cases.h"
#include "tests/harness/case_coverage.h"
#include "tests/harness/case_op.h"
#include "tests/harness/kernel_coverage.h"
#include "tests/harness/prepared_op.h"
#include "tests/harness/wrong_inputs.h"

namespace skiff::harness {
namespace {

using ::testing::ContainsRegex;

const std::map<std::string, std::string> kWithoutCase = {
    {"feed", "the executor binds its output to the fed tensor"},
    {"fetch", "the executor copies its input out"},
    {"while", "no kernel runs it: tests/framework/executor/loop_while_test.cc"},
    {"while_grad", "no kernel runs it: loop_gradient_test.cc"},
    {"conditional_block", "no kernel runs it: conditional_test.cc"},
    {"conditional_block_grad", "no kernel runs it: loop_gradient_test.cc"},
    {"recurrent", "no kernel runs it: loop_recurrent_test.cc"},
    {"recurrent_grad", "no kernel runs it: loop_gradient_test.cc"},
    {"loop_boundary", "it never runs"},
    {"write_to_array", "arrays: tests/framework/executor/tensor_array_test.cc"},
    {"read_from_array", "arrays: tensor_array_test.cc"},
    {"lod_array_length", "arrays: tensor_array_test.cc"},
    {"tensor_array_to_tensor", "arrays: tensor_array_test.cc"},
    {"tensor_array_to_tensor_grad", "arrays: tensor_array_test.cc"},
    {"lod_tensor_to_array", "arrays: tests/framework/executor/dynamic_rnn_test.cc"},
    {"array_to_lod_tensor", "arrays: dynamic_rnn_test.cc"},
    {"beam_search_decode", "arrays: tests/framework/executor/beam_search_test.cc"},
    {"shrink_rnn_memory", "its rows are known in a run only: dynamic_rnn_test.cc"},
    {"shrink_rnn_memory_grad", "dynamic_rnn_test.cc"},
};

const CaseList& Cases() {
  static const CaseList& cases = *[] {
    auto* list = new CaseList;
    AddAllCases(*list);
    return list;
  }();
  return cases;
}

TEST(DefaultOpRegistry, HasDocumentationKernelAndCaseForEveryOp) {
  for (const std::string& problem : CoverageProblems(DefaultOpRegistry(), Cases(), kWithoutCase)) {
    ADD_FAILURE() << problem;
  }
}

// Each test of a family runs every kernel that accepts its cases, so these have run.
TEST(DefaultOpRegistry, HasACaseForEveryKernelCandidate) {
  for (const std::string& kernel : KernelsWithoutCase(DefaultOpRegistry(), Cases())) {
    const std::string type = kernel.substr(0, kernel.find('/'));
    if (!kWithoutCase.contains(type)) ADD_FAILURE() << kernel << " accepts no case";
  }
}

// Each test of a family runs these kernels on fewer rows than they were prepared for.
TEST(DefaultOpRegistry, HasACaseWithFewerRowsForEveryKernelThatTakesThem) {
  const RowKernels kernels = FindRowKernels(DefaultOpRegistry(), Cases());
  RecordProperty("kernels_that_take_fewer_rows", std::to_string(kernels.all.size()));
  EXPECT_FALSE(kernels.checked.empty());
  for (const std::string& kernel : RowKernelsWithoutCheck(kernels)) {
    ADD_FAILURE() << kernel << " takes fewer rows, but every case fixes the rows";
  }
}

// Whether the case runs is up to the machine: see cuda_test, and loop_cuda_test for arrays.
TEST(DefaultOpRegistry, HasACaseForEveryCudaKernel) {
  for (const std::string& kernel :
       KernelsWithoutCase(DefaultOpRegistry(), Cases(), Place::Cuda())) {
    const std::string type = kernel.substr(0, kernel.find('/'));
    if (!kWithoutCase.contains(type)) ADD_FAILURE() << kernel << " accepts no case";
  }
}

TEST(DefaultOpRegistry, NamesTheLibrariesOfItsKernels) {
  const std::map<std::string, std::string>& libraries = DefaultOpRegistry().libraries();
  ASSERT_EQ(libraries.size(), 2u);
  EXPECT_THAT(libraries.at("oneDNN"),
              ContainsRegex("^[23]\\.[0-9]+\\.[0-9]+, cpu isa 0x[0-9a-f]+$"));
  EXPECT_THAT(libraries.at("Highway"), ContainsRegex("^[0-9.]+, [A-Z0-9_]+$"));
}

TEST(DefaultOpRegistry, RefusesInputsOfGradientOpsThatDoNotFit) {
  for (const std::string& problem : WrongInputProblems(DefaultOpRegistry(), Cases())) {
    ADD_FAILURE() << problem;
  }
}

TEST(DefaultOpRegistry, ComparesEachGradientWithWhatItIsTheGradientOf) {
  for (const std::string& problem : UncheckedGradients(DefaultOpRegistry(), Cases())) {
    const std::string type = problem.substr(0, problem.find(':'));
    if (!kWithoutCase.contains(type)) ADD_FAILURE() << problem;
  }
}

// Returns the op of the case with a slot that gives an attribute connected to `count` variables, or
// to one with `count` elements. `metas` are those of its inputs, without contents, as while a
// program is built.
Op WithUnknownAttribute(const OpCase& op_case, const SlotDef& slot, int64_t count,
                        std::vector<TensorMeta>* metas) {
  const OpDef& def = DefaultOpRegistry().Get(op_case.type);
  Op op = MakeOp(op_case);
  const std::vector<std::string> before = InputOrder(def, op);
  const std::vector<TensorMeta> known =
      InputMetas(def, op, MakeInputs(op_case, op_case.dtypes.front()));
  op.SetInput(slot.name, std::vector<std::string>(slot.duplicable ? static_cast<size_t>(count) : 1,
                                                  "numbers"));
  for (const std::string& name : InputOrder(def, op)) {
    TensorMeta meta{.shape = {slot.duplicable ? 1 : count}, .dtype = DType::kInt32};
    const AttrType type = def.FindAttr(slot.attribute)->type;
    if (type == AttrType::kFloat || type == AttrType::kFloats) meta.dtype = DType::kFloat32;
    const auto at = std::ranges::find(before, name);
    if (at != before.end()) meta = known[static_cast<size_t>(at - before.begin())];
    meta.contents = nullptr;
    metas->push_back(meta);
  }
  return op;
}

// An input gives an attribute, whose numbers aren't known yet: whatever the op's own attribute is
// and the input claims to have, the shape rule says what it knows or throws an Error.
TEST(DefaultOpRegistry, RulesOfShapesTakeAttributesThatAreUnknown) {
  std::map<std::string, int> cases_of;
  std::map<std::string, int64_t> inferred;  // by op and slot
  for (const OpCase& op_case : Cases()) {
    if (op_case.benchmark_only || ++cases_of[op_case.type] > 3) continue;
    const OpDef& def = DefaultOpRegistry().Get(op_case.type);
    for (const SlotDef& slot : def.inputs) {
      if (slot.attribute.empty() || op_case.inputs.contains(slot.name)) continue;
      for (const int64_t count : {int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{2}, int64_t{4},
                                  int64_t{12}, int64_t{1} << 40}) {
        if (slot.duplicable && (count < 1 || count > 12)) continue;
        std::vector<TensorMeta> metas;
        Op op = WithUnknownAttribute(op_case, slot, count, &metas);
        const AttrType type = def.FindAttr(slot.attribute)->type;
        const size_t lists = type == AttrType::kInts || type == AttrType::kLongs ? 8 : 1;
        int64_t& inferred_of = inferred[StrCat(op_case.type, " ", slot.name)];
        for (size_t own = 0; own < lists; ++own) {
          if (type == AttrType::kInts) {
            op.SetAttr(slot.attribute, std::vector<int32_t>(own, 1));
          } else if (type == AttrType::kLongs) {
            op.SetAttr(slot.attribute, std::vector<int64_t>(own, 1));
          }
          OpContext context(op, def, metas, std::vector<TensorMeta>(OutputOrder(def, op).size()));
          try {
            InferOutputs(&context);
            ++inferred_of;
          } catch (const Error&) {
          } catch (const std::exception& error) {
            ADD_FAILURE() << CaseName(op_case) << " with " << slot.name << " of " << count
                          << " numbers: " << error.what();
          }
        }
      }
    }
  }
  // None refuses all that isn't known.
  EXPECT_FALSE(inferred.empty());
  for (const auto& [slot, count] : inferred) EXPECT_GT(count, 0) << slot;
}

}  // namespace
}  // namespace skiff::harness
