// The ops of cases of the operator tests, exported and imported again, compute the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/str_cat.h"
#include "framework/executor/executor.h"
#include "framework/onnx/exporters.h"
#include "framework/onnx/import.h"
#include "tests/harness/all_cases.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/temp_directory.h"
#include "tests/onnx/case_models.h"

namespace skiff::onnx_tests {
namespace {

// What a file has for ragged tensors: rows, and the offsets beside them.
harness::NamedTensors RowsAndOffsets(const harness::NamedTensors& tensors) {
  harness::NamedTensors all;
  for (const auto& [name, tensor] : tensors) {
    Tensor rows = tensor;
    rows.ShareLoD(nullptr);
    all[name] = rows;
    for (size_t level = 0; level < tensor.lod().size(); ++level) {
      const std::vector<uint64_t>& offsets = tensor.lod()[level];
      const std::vector<int64_t> values(offsets.begin(), offsets.end());
      const Shape shape = {static_cast<int64_t>(values.size())};
      all[StrCat(name, ".lod", level)] = Tensor::FromValues(shape, values);
    }
  }
  return all;
}

class CaseRoundTrip {
 public:
  // Returns what differs after the round trip, or an empty string.
  std::string Difference(const CaseModel& model, const ExportedCase& exported) {
    // Without a sync, which takes longer than the rest.
    std::ofstream(path_, std::ios::binary) << exported.bytes;
    const harness::NamedTensors given = RowsAndOffsets(model.feeds);
    const harness::NamedTensors outputs = RowsAndOffsets(model.outputs);
    Executor executor;
    try {
      const InferenceModel imported = ImportOnnx(path_, &executor.scope());
      FeedList feeds;
      for (const std::string& name : imported.feed_names) feeds.emplace_back(name, given.at(name));
      const auto found = executor.Run(*imported.program, feeds, imported.fetch_names);
      for (size_t i = 0; i < found.size(); ++i) {
        const Tensor& expected = outputs.at(imported.fetch_names[i]);
        std::string difference = TensorDifference(found[i], expected);
        if (!difference.empty()) return StrCat(imported.fetch_names[i], ": ", difference);
      }
    } catch (const Error& error) {
      return StrCat("error: ", error.what());
    }
    return "";
  }

 private:
  // Sums round by the size of their terms, so the largest number of a tensor counts for all.
  static std::string TensorDifference(const Tensor& found, const Tensor& expected) {
    if (found.dtype() != expected.dtype() || found.shape() != expected.shape()) {
      return StrCat("found ", found.dtype(), " ", found.shape(), ", expected ", expected.dtype(),
                    " ", expected.shape());
    }
    const harness::Array array = harness::ToArray(expected);
    double largest = 1;
    for (const double value : array.values) {
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    }
    return harness::FirstDifference(harness::ToArray(found), array, 1e-5 * largest);
  }

  TempDirectory directory_;
  std::string path_ = StrCat(directory_.path(), "/case.onnx");
};

// Compositions compute squares and exponentials as they are, and reduce no empty tensor. The
// squares of smaller numbers are denormal.
bool HasUsualNumbers(const Tensor& tensor) {
  const harness::Array array = harness::ToArray(tensor);
  return !array.values.empty() && std::ranges::all_of(array.values, [](double value) {
    return value == 0 || (std::abs(value) > 1e-15 && std::abs(value) < 1e15);  // false for NaN
  });
}

bool HasUsualNumbers(const CaseModel& model, const ExportedCase& exported) {
  const auto is_usual = [](const auto& entry) { return HasUsualNumbers(entry.second); };
  return std::ranges::all_of(model.feeds, is_usual) &&
         std::ranges::all_of(exported.fetches, [&](const std::string& fetch) {
           return HasUsualNumbers(model.outputs.at(fetch));
         });
}

// A case in the lowest opset that takes the most of its outputs.
struct OldestForm {
  int opset = 0;
  ExportedCase exported;
};

OldestForm OldestFormOf(const CaseModel& model) {
  OldestForm oldest;
  // Those that brought a form.
  for (const int opset : {13, 17, 18, 19, 20, 21}) {
    ExportedCase exported = ExportCase(model, {.opset = opset});
    if (exported.fetches.size() <= oldest.exported.fetches.size()) continue;
    oldest = {.opset = opset, .exported = std::move(exported)};
    if (oldest.exported.refusal.empty()) break;
  }
  return oldest;
}

// Ops that no case here compares, with the reasons.
const std::map<std::string, std::string>& OpsWithoutComparison() {
  static const std::map<std::string, std::string>& ops = *[] {
    auto* all = new std::map<std::string, std::string>;
    (*all)["multinomial"] = "the import has no random op";
    for (const char* type :
         {"array_to_lod_tensor", "conditional_block", "lod_array_length", "lod_rank_table",
          "lod_tensor_to_array", "read_from_array", "recurrent", "shrink_rnn_memory",
          "tensor_array_to_tensor", "while", "write_to_array"}) {
      (*all)[type] = "it needs others around it: export_loops_test.cc";
    }
    return all;
  }();
  return ops;
}

// Cases that the import, or a run of what it makes, refuses.
std::map<std::string, std::string> RefusedCases() {
  return {
      {"conv2d.one_step_beyond_the_image", "a number of its window is 2147483647"},
      {"pool2d.max_one_step_beyond_the_image", "a number of its window is 2147483647"},
      {"pool2d.avg_one_step_beyond_the_image", "a number of its window is 2147483647"},
      {"set_value.nothing", "expand_v2: shape = [0, 3]"},
      {"set_value.nothing_by_attribute", "expand_v2: shape = [0, 3]"},
      {"set_value.bool", "put_along_axis: no kernel for cpu, bool"},
      {"set_value.bool_by_attribute", "put_along_axis: no kernel for cpu, bool"},
  };
}

bool IsCandidate(const harness::OpCase& op_case) {
  return onnx_export::ExporterTable::All().Find(op_case.type) != nullptr &&
         !OpsWithoutComparison().contains(op_case.type) && !op_case.benchmark_only &&
         HasPlainInputs(op_case);
}

// All cases would take long: the first of each op and opset, and some of the others.
bool IsChosen(int number) { return number <= 3 || number % 4 == 0; }

TEST(CaseRoundTripTest, ComputesTheSame) {
  // The cases are so small that threads would mostly wait for each other.
  omp_set_num_threads(1);
  CaseRoundTrip round_trip;
  std::map<std::string, std::string> refusals = RefusedCases();
  std::map<std::pair<std::string, int>, int> counts;
  std::set<std::string> compared;
  std::set<int> opsets;
  for (const harness::OpCase& op_case : harness::AllCases()) {
    if (!IsCandidate(op_case)) continue;
    const std::string name = StrCat(op_case.type, ".", op_case.name);
    SCOPED_TRACE(name);
    const CaseModel model = MakeCaseModel(op_case, op_case.dtypes.front(), false);
    const auto [opset, exported] = OldestFormOf(model);
    if (exported.bytes.empty() || !HasUsualNumbers(model, exported)) continue;
    const int number = ++counts[{op_case.type, opset}];
    const auto refused = refusals.find(name);
    if (refused == refusals.end() && !IsChosen(number)) continue;
    const std::string difference = round_trip.Difference(model, exported);
    if (refused != refusals.end()) {
      EXPECT_THAT(difference, testing::HasSubstr(refused->second));
      refusals.erase(refused);
      continue;
    }
    EXPECT_EQ(difference, "") << "opset " << opset;
    compared.insert(op_case.type);
    opsets.insert(opset);
  }
  EXPECT_THAT(refusals, testing::IsEmpty());
  EXPECT_THAT(opsets, testing::IsSupersetOf({13, 17, 18, 19, 20}));
  for (const auto& [type, entry] : onnx_export::ExporterTable::All().entries()) {
    EXPECT_NE(compared.contains(type), OpsWithoutComparison().contains(type)) << type;
  }
}

}  // namespace
}  // namespace skiff::onnx_tests
