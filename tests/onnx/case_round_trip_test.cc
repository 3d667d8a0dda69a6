// The ops of cases of the operator tests, exported and imported again, compute the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/str_cat.h"
#include "framework/executor/executor.h"
#include "framework/io/file.h"
#include "framework/onnx/exporters.h"
#include "framework/onnx/import.h"
#include "tests/harness/all_cases.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/temp_directory.h"
#include "tests/onnx/case_models.h"

namespace skiff::onnx_tests {
namespace {

class CaseRoundTrip {
 public:
  // Returns what differs after the round trip, or an empty string.
  std::string Difference(const CaseModel& model, const ExportedCase& exported) {
    AtomicWriteFile(path_, exported.bytes);
    Executor executor;
    try {
      const InferenceModel imported = ImportOnnx(path_, &executor.scope());
      FeedList feeds;
      for (const std::string& name : imported.feed_names) {
        feeds.emplace_back(name, model.feeds.at(name));
      }
      const auto found = executor.Run(*imported.program, feeds, imported.fetch_names);
      for (size_t i = 0; i < found.size(); ++i) {
        const Tensor& expected = model.outputs.at(imported.fetch_names[i]);
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

// Compositions compute squares and exponentials as they are, and reduce no empty tensor.
bool HasUsualNumbers(const harness::NamedTensors& tensors) {
  return std::ranges::all_of(tensors, [](const auto& entry) {
    const harness::Array array = harness::ToArray(entry.second);
    return !array.values.empty() && std::ranges::all_of(array.values, [](double value) {
      return std::abs(value) < 1e15;  // false for NaN
    });
  });
}

// A few cases of each op, in float32 where the op has that.
std::vector<const harness::OpCase*> ChosenCases() {
  constexpr int kOfEachOp = 3;
  std::map<std::string, int> counts;
  std::vector<const harness::OpCase*> chosen;
  for (const harness::OpCase& op_case : harness::AllCases()) {
    const bool has_form = onnx_export::ExporterTable::All().Find(op_case.type) != nullptr;
    if (!has_form || op_case.benchmark_only || !HasPlainInputs(op_case)) continue;
    if (++counts[op_case.type] <= kOfEachOp) chosen.push_back(&op_case);
  }
  return chosen;
}

TEST(CaseRoundTripTest, ComputesTheSame) {
  CaseRoundTrip round_trip;
  int compared = 0;
  for (const harness::OpCase* op_case : ChosenCases()) {
    SCOPED_TRACE(StrCat(op_case->type, ".", op_case->name));
    const CaseModel model = MakeCaseModel(*op_case, op_case->dtypes.front(), false);
    if (!HasUsualNumbers(model.feeds) || !HasUsualNumbers(model.outputs)) continue;
    const ExportedCase exported = ExportCase(model, {});
    if (exported.bytes.empty()) continue;
    EXPECT_EQ(round_trip.Difference(model, exported), "");
    ++compared;
  }
  EXPECT_GT(compared, 300);
}

}  // namespace
}  // namespace skiff::onnx_tests
