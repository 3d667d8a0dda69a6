// Numbers near 1e20 and 1e-20, which float32 holds, but whose squares it doesn't: kernels of
// float32 must find what those of float64 find, wherever float32 can hold that. Scales the inputs
// of every case, one by one and all together, and runs the op and its gradient ops. Ops that are
// right for any size also get numbers near 1e33 and 1e-22.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "tests/harness/all_cases.h"
#include "tests/harness/case_op.h"
#include "tests/harness/gradient_check.h"
#include "tests/harness/prepared_op.h"

namespace skiff::harness {
namespace {

constexpr double kFactors[] = {0x1p66, 0x1p-66};
constexpr double kMoreFactors[] = {0x1p112, 0x1p-72};
// Larger inputs would take more time without showing more.
constexpr int64_t kMaxElements = 4000;
// Of the largest element of an array. Differences in kind are larger, those of rounding smaller.
constexpr double kTolerance = 1e-2;
// What float32 holds with all its digits.
constexpr double kLargest = 3e38;
constexpr double kSmallest = 1e-35;

// The ops of which docs/operator_limits.md says that they are right for numbers of any size: not
// even an infinity or NaN may take the place of a number.
bool IsForAnySize(const std::string& type) {
  static const auto& types =
      *new std::set<std::string>{"batch_norm", "clip_by_norm",  "cos_sim",    "gelu", "group_norm",
                                 "hard_swish", "instance_norm", "layer_norm", "mish", "norm",
                                 "p_norm",     "rms_norm",      "softsign",   "swish"};
  return types.contains(type);
}

// The ops whose results differ, and why.
constexpr const char* kSquares = "its state is a square, which float32 doesn't hold";
constexpr const char* kGates = "products overflow, and a gate makes a number of an infinity";
constexpr const char* kScores =
    "scores overflow, and softmax makes numbers of infinities, or the "
    "gradient is what cancels";
constexpr const char* kFarOutside = "a place far outside of an image loses its digits";
constexpr const char* kScale = "the gradient times GradScale overflows";
constexpr const char* kAreas = "areas overflow, and a quotient makes 0 of an infinity";
constexpr const char* kThreshold = "rounding takes a confidence of 1/2 over the threshold or not";

const std::map<std::string, std::string>& AcceptedOps() {
  static const auto& ops = *new std::map<std::string, std::string>{{"adadelta", kSquares},
                                                                   {"adagrad", kSquares},
                                                                   {"adam", kSquares},
                                                                   {"adamw", kSquares},
                                                                   {"attention_decoder", kGates},
                                                                   {"decayed_adagrad", kSquares},
                                                                   {"grid_sampler", kFarOutside},
                                                                   {"gru", kGates},
                                                                   {"gru_unit", kGates},
                                                                   {"iou_similarity", kAreas},
                                                                   {"lamb", kSquares},
                                                                   {"lars_momentum", kScale},
                                                                   {"lstm", kGates},
                                                                   {"lstmp", kGates},
                                                                   {"merged_adam", kSquares},
                                                                   {"multihead_attention", kScores},
                                                                   {"rmsprop", kSquares},
                                                                   {"rnn", kGates},
                                                                   {"sequence_attention", kScores},
                                                                   {"yolo_box", kThreshold}};
  return ops;
}

// Returns where a float32 array differs from the float64 one; nothing if it doesn't. Unless the
// result must be finite, an infinity or NaN is no silent difference: products overflow where their
// sum might not.
std::optional<std::string> Difference(const Tensor& found, const Tensor& expected,
                                      bool must_be_finite) {
  if (!IsFloat(found.dtype()) || found.shape() != expected.shape()) return std::nullopt;
  const std::vector<double> narrow = ToArray(found).values;
  const std::vector<double> wide = ToArray(expected).values;
  const auto is_held = [](double x) { return std::abs(x) <= kLargest; };
  double size = 0;
  for (const double x : wide) size = std::max(size, is_held(x) ? std::abs(x) : 0);
  if (size < kSmallest) return std::nullopt;
  for (size_t i = 0; i < wide.size(); ++i) {
    const bool is_close = std::abs(narrow[i] - wide[i]) <= kTolerance * size;
    if (is_held(wide[i]) && !is_close && (must_be_finite || std::isfinite(narrow[i]))) {
      return StrCat("[", i, "] of ", wide.size(), " is ", narrow[i], ", expected ", wide[i],
                    " beside ", size);
    }
  }
  return std::nullopt;
}

// Runs the op and its gradient ops. Returns what they compute.
NamedTensors RunAll(const OpCase& op_case, const NamedTensors& inputs) {
  const OpRegistry& registry = DefaultOpRegistry();
  const Op forward = MakeOp(op_case);
  if (op_case.gradients.empty()) {
    PreparedOp prepared(registry, forward, inputs);
    prepared.Load(inputs, 0);
    prepared.Run();
    return prepared.Outputs();
  }
  ForwardRun run = RunForward(registry, op_case, forward, inputs);
  const std::vector<std::string> wanted = GradientVariables(op_case);
  const std::vector<Op> ops = GradientOps(registry, op_case, forward, [&](const std::string& name) {
    return std::ranges::count(wanted, name) > 0;
  });
  NamedTensors results = run.outputs;
  for (const Op& op : ops) {
    PreparedOp prepared(registry, op, run.values);
    prepared.Load(run.values, 0);
    prepared.Run();
    for (const auto& [name, tensor] : prepared.Outputs()) {
      run.values[name] = results[name] = tensor;
    }
  }
  return results;
}

NamedTensors InFloat64(const NamedTensors& inputs) {
  NamedTensors wide;
  for (const auto& [name, tensor] : inputs) {
    wide[name] = tensor.dtype() == DType::kFloat32 ? Cast(tensor, DType::kFloat64) : tensor;
  }
  return wide;
}

// Appends what is wrong with the op for these inputs of float32.
void Compare(const OpCase& op_case, const std::string& what, const NamedTensors& inputs,
             std::vector<std::string>* problems) {
  NamedTensors wide;
  try {
    wide = RunAll(op_case, InFloat64(inputs));
  } catch (const Error&) {
    return;  // such as a probability above 1
  }
  NamedTensors narrow;
  try {
    narrow = RunAll(op_case, inputs);
  } catch (const Error& error) {
    problems->push_back(StrCat(CaseName(op_case), " with ", what, ": ", error.what()));
    return;
  }
  for (const auto& [name, tensor] : wide) {
    const auto difference = Difference(narrow.at(name), tensor, IsForAnySize(op_case.type));
    if (difference) {
      problems->push_back(StrCat(CaseName(op_case), " with ", what, ": ", name, *difference));
    }
  }
}

// Cases of huge or tiny numbers are scaled already, and have references of their own.
bool IsOrdinary(const Array& array) {
  double size = 0;
  for (const double x : array.values) size = std::max(size, std::abs(x));
  return size == 0 || std::isinf(size) || (size > 1e-10 && size < 1e10);
}

bool IsScaled(const OpCase& op_case) {
  if (op_case.benchmark_only || std::ranges::count(op_case.dtypes, DType::kFloat32) == 0 ||
      std::ranges::count(op_case.dtypes, DType::kFloat64) == 0) {
    return false;
  }
  return std::ranges::all_of(op_case.inputs, [](const auto& slot) {
    return std::ranges::all_of(slot.second, [](const Array& array) {
      return array.shape.element_count() <= kMaxElements && IsOrdinary(array);
    });
  });
}

std::vector<std::string> ProblemsOf(const OpCase& op_case) {
  std::vector<std::string> problems;
  const NamedTensors inputs = MakeInputs(op_case, DType::kFloat32);
  std::vector<std::string> scaled = {""};  // "": all
  for (const auto& [name, tensor] : inputs) {
    if (tensor.dtype() == DType::kFloat32) scaled.push_back(name);
  }
  if (scaled.size() == 2) scaled.pop_back();
  std::vector<double> factors(std::begin(kFactors), std::end(kFactors));
  if (IsForAnySize(op_case.type)) {
    factors.insert(factors.end(), std::begin(kMoreFactors), std::end(kMoreFactors));
  }
  for (const std::string& chosen : scaled) {
    for (const double factor : factors) {
      NamedTensors changed;
      for (const auto& [name, tensor] : inputs) {
        changed[name] = CopyToCpu(tensor);
        if (tensor.dtype() != DType::kFloat32 || (!chosen.empty() && chosen != name)) continue;
        float* values = changed[name].data<float>();
        for (int64_t i = 0; i < tensor.element_count(); ++i) {
          values[i] *= static_cast<float>(factor);
        }
      }
      Compare(op_case, StrCat(chosen.empty() ? "all inputs" : chosen, " times ", factor), changed,
              &problems);
    }
  }
  return problems;
}

class ScaledInputsTest : public ::testing::Test {
 public:
  explicit ScaledInputsTest(const std::vector<const OpCase*>& cases) : cases_(cases) {}

  void TestBody() override {
    std::vector<std::string> problems;
    for (const OpCase* op_case : cases_) {
      const std::vector<std::string> more = ProblemsOf(*op_case);
      problems.insert(problems.end(), more.begin(), more.end());
    }
    const bool is_accepted = AcceptedOps().contains(cases_.front()->type);
    if (is_accepted) {
      EXPECT_FALSE(problems.empty()) << "nothing differs: take it out of AcceptedOps ("
                                     << AcceptedOps().at(cases_.front()->type) << ")";
    } else {
      for (size_t i = 0; i < std::min<size_t>(problems.size(), 5); ++i) {
        ADD_FAILURE() << problems[i];
      }
    }
  }

 private:
  const std::vector<const OpCase*>& cases_;
};

int RunTests(int* argc, char** argv) {
  ::testing::InitGoogleTest(argc, argv);
  std::map<std::string, std::vector<const OpCase*>> by_type;
  for (const OpCase& op_case : AllCases()) {
    if (IsScaled(op_case)) by_type[op_case.type].push_back(&op_case);
  }
  for (const auto& [type, of_type] : by_type) {
    ::testing::RegisterTest(
        "ScaledInputs", type.c_str(), nullptr, nullptr, __FILE__, __LINE__,
        [&of_type]() -> ::testing::Test* { return new ScaledInputsTest(of_type); });
  }
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace skiff::harness

int main(int argc, char** argv) { return skiff::harness::RunTests(&argc, argv); }
