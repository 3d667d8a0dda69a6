// Every op but those with Precision::kNone takes bfloat16 and float16 (half) wherever it takes
// float32, and computes the bits of the float32 op, rounded once (docs/precision.md). Runs each
// case, and the gradient ops of each case, as a program in half and as one in float32, on the same
// numbers:
//
//   {Out: [y]} = tanh(X: [x])       {Out: [y]} = tanh(X: [x])
//   x: bfloat16              ↔      x: float32, the numbers of bfloat16
//   y: bfloat16                     y: float32, which the test rounds
//
// Kernels with bits of their own (kNativeHalfKernel) don't run here; op_runner.h checks them.
//
// Also tells which ops the pass widen runs in float32 on the CPU, and on a device, for want of a
// kernel of half, even one that needs another processor or a library. The lists,
// ops_widened_on_cpu.txt and ops_widened_on_cuda.txt, may only shrink: an op that gets such a
// kernel leaves them, and a new op that only moves numbers comes with one.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/analysis/widened_ops.h"
#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "framework/io/file.h"
#include "framework/ir/op_role.h"
#include "framework/op/grad_name.h"
#include "framework/op/half_arguments.h"
#include "framework/op/registry.h"
#include "memory/places.h"
#include "tests/harness/all_cases.h"
#include "tests/harness/case_op.h"
#include "tests/harness/cuda_place.h"
#include "tests/harness/gradient_check.h"
#include "tests/harness/round_like_half.h"

namespace skiff::harness {
namespace {

// Lower them with the lists.
constexpr size_t kMostWidenedOnCpu = 253;
constexpr size_t kMostWidenedOnDevice = 175;

// Larger inputs would take more time without showing more.
constexpr int64_t kMaxElements = 4096;
// Cases of an op that run in float16, too: what is widened, and how, is the same.
constexpr size_t kCasesInFloat16 = 2;
constexpr size_t kCasesInFloat16OnDevice = 1;
constexpr size_t kMaxShownProblems = 5;

constexpr const char* kArrays = "arrays: half_arrays_test";

// Ops that don't run here although their rule isn't Precision::kNone: where they are tested.
const std::map<std::string, std::string>& TestedElsewhere() {
  static const auto& ops =
      *new std::map<std::string, std::string>{{"array_to_lod_tensor", kArrays},
                                              {"beam_search_decode", kArrays},
                                              {"lod_array_length", kArrays},
                                              {"lod_tensor_to_array", kArrays},
                                              {"read_from_array", kArrays},
                                              {"shrink_rnn_memory", kArrays},
                                              {"shrink_rnn_memory_grad", kArrays},
                                              {"tensor_array_to_tensor", kArrays},
                                              {"tensor_array_to_tensor_grad", kArrays},
                                              {"write_to_array", kArrays}};
  return ops;
}

// Ops that throw an Error in half, or have other bits than the rounded float32 op, and why.
const std::map<std::string, std::string>& Exceptions() {
  static const auto& ops = *new std::map<std::string, std::string>{};
  return ops;
}

// Calls use(slot, i, name) for each argument of the op.
template <typename Use>
void ForEachArgument(const std::vector<SlotDef>& slots, const Slots& arguments, const Use& use) {
  for (const SlotDef& slot : slots) {
    for (const SlotArguments& given : arguments) {
      if (given.slot != slot.name) continue;
      for (size_t i = 0; i < given.arguments.size(); ++i) {
        if (given.arguments[i] != kEmptyVarName) use(slot, i, given.arguments[i]);
      }
    }
  }
}

// What an op reads and writes in a program of half.
class OpInHalf {
 public:
  // `values` has the op's inputs in float32, if they are floats.
  OpInHalf(const Op& op, const NamedTensors& values, DType half) : op_(op), half_(half) {
    ForEachArgument(DefaultOpRegistry().Get(op.type).inputs, op.inputs,
                    [&](const SlotDef& slot, size_t, const std::string& name) {
                      const Tensor& value = values.at(name);
                      const bool is_half = value.dtype() == DType::kFloat32 && MayBeHalf(slot);
                      inputs_.try_emplace(name, is_half ? Cast(value, half) : value);
                      reads_half_ = reads_half_ || (is_half && FollowsHalf(slot));
                      has_half_ = has_half_ || is_half;
                    });
  }

  const NamedTensors& inputs() const { return inputs_; }
  bool has_half() const { return has_half_; }

  // Returns the dtype of output i of the slot if the float32 op makes float32: a gradient has the
  // dtype of its input.
  DType OutputDType(const SlotDef& slot, size_t i) const {
    const std::vector<std::string>& of = op_.Input(ForwardName(slot.name));
    const auto input = i < of.size() ? inputs_.find(of[i]) : inputs_.end();
    if (input != inputs_.end()) return input->second.dtype();
    return reads_half_ && !slot.keeps_float32 ? half_ : DType::kFloat32;
  }

 private:
  // An input of which only the shape counts is half in a program, too.
  static bool MayBeHalf(const SlotDef& slot) {
    return FollowsHalf(slot) || (slot.shape_only && !slot.keeps_float32 && slot.attribute.empty());
  }

  const Op& op_;
  DType half_;
  NamedTensors inputs_;
  bool reads_half_ = false;
  bool has_half_ = false;
};

// A program of one op and its feeds.
class LoneOp {
 public:
  LoneOp(const Op& op, const NamedTensors& inputs) {
    program_.seed = 1;
    for (const auto& [name, tensor] : inputs) {
      tensor.is_selected_rows() ? AddSelectedRows(name, tensor) : AddFeed(name, tensor);
    }
    Append(op);
  }

  const Program& program() const { return program_; }
  const FeedList& feeds() const { return feeds_; }

 private:
  void Append(const Op& op) {
    InferOp(DefaultOpRegistry(), program_.root(), program_.root()->AppendOp(op));
  }

  void AddFeed(const std::string& name, const Tensor& tensor) {
    Var var{.name = name};
    var.dtype = tensor.dtype();
    var.dims = tensor.shape().ToVector();
    var.lod_level = static_cast<int32_t>(tensor.lod().size());
    program_.root()->CreateVar(std::move(var));
    feeds_.emplace_back(name, tensor);
  }

  // No program is fed selected rows: the sparse gradient of a lookup makes them. A row that isn't
  // used is that of the padding.
  void AddSelectedRows(const std::string& name, const Tensor& tensor) {
    const Array array = ToArray(tensor);
    const int64_t padding = array.height;
    Array ids = Values({array.shape[0]}, {array.rows.begin(), array.rows.end()}, DType::kInt64);
    std::ranges::replace(ids.values, -1.0, static_cast<double>(padding));
    const Array values = {.shape = array.shape, .values = array.values};
    const Array table = Uniform({array.height, array.shape[1]}, 1);
    AddFeed(name + ".ids", ToTensor(ids, DType::kInt64));
    AddFeed(name + ".values", ToTensor(values, tensor.dtype()));
    AddFeed(name + ".table", ToTensor(table, tensor.dtype()));
    Op gradient("lookup_table_v2_grad");
    gradient.SetInput("Ids", {name + ".ids"}).SetInput("W", {name + ".table"});
    gradient.SetInput(GradName("Out"), {name + ".values"}).SetOutput(GradName("W"), {name});
    gradient.SetAttr("is_sparse", true).SetAttr("padding_idx", padding);
    Append(gradient);
  }

  Program program_;
  FeedList feeds_;
};

struct OpRun {
  NamedTensors outputs;
  bool is_widened = false;
};

OpRun RunAlone(const Op& op, const NamedTensors& inputs, Place place) {
  const LoneOp lone(op, inputs);
  const FetchList fetches = op.OutputNames();
  Executor executor(place);
  static auto& exact_of = *new std::map<PlaceKind, KernelNames>;
  KernelNames& exact = exact_of[place.kind];
  if (exact.empty()) exact = WidenedInsteadOfNative(DefaultOpRegistry(), place.kind);
  BoundProgram bound =
      executor.Compile(lone.program(), {.kernels = exact}).Bind(lone.feeds(), fetches);
  bound.Step();
  OpRun run;
  for (size_t i = 0; i < fetches.size(); ++i) run.outputs[fetches[i]] = ToPlain(bound.fetch(i));
  run.is_widened = WidenedOps(bound.plan()).contains(op.type) && !exact.contains(op.type);
  return run;
}

// Returns "" if what an op makes in half is as expected, else what differs.
std::string Difference(const Tensor& found, const Tensor& expected) {
  if (found.dtype() != expected.dtype()) {
    return StrCat("is ", found.dtype(), ", expected ", expected.dtype());
  }
  if (found.lod() != expected.lod()) return "has another LoD than in float32";
  const bool has_same_rows = found.is_selected_rows() == expected.is_selected_rows() &&
                             ToArray(found).rows == ToArray(expected).rows;
  if (!has_same_rows) return "has other selected rows than in float32";
  return NumberDifference(found, expected);
}

// Runs ops in half and in float32, and notes what differs.
class HalfCheck {
 public:
  explicit HalfCheck(Place place) : place_(place) {}

  // Runs the op of a case and its gradient ops.
  void Run(const OpCase& op_case, DType half) {
    where_ = StrCat(CaseName(op_case), " in ", half);
    NamedTensors values = MakeInputs(op_case, DType::kFloat32);
    const Op forward = MakeOp(op_case);
    Compare(forward, half, values);
    if (op_case.gradients.empty()) return;
    values = RunForward(DefaultOpRegistry(), op_case, forward, values).values;
    const std::vector<std::string> wanted = GradientVariables(op_case);
    const auto wants = [&](const std::string& name) {
      return std::ranges::count(wanted, name) > 0;
    };
    for (const Op& op : GradientOps(DefaultOpRegistry(), op_case, forward, wants)) {
      values.merge(Compare(op, half, values));
    }
  }

  // By op type.
  const std::map<std::string, std::vector<std::string>>& problems() const { return problems_; }
  const std::set<std::string>& run_in_half() const { return run_in_half_; }
  const std::set<std::string>& widened() const { return widened_; }

 private:
  // Returns what the op makes in float32 of the numbers that half has.
  NamedTensors Compare(const Op& op, DType half, const NamedTensors& values) {
    const OpInHalf in_half(op, values, half);
    NamedTensors wide;
    for (const auto& [name, tensor] : in_half.inputs()) {
      wide[name] = IsHalf(tensor.dtype()) ? Cast(tensor, DType::kFloat32) : tensor;
    }
    OpRun expected = RunAlone(op, wide, place_);
    if (!in_half.has_half()) return std::move(expected.outputs);
    run_in_half_.insert(op.type);
    try {
      const OpRun found = RunAlone(op, in_half.inputs(), place_);
      if (found.is_widened) widened_.insert(op.type);
      CompareOutputs(op, in_half, found.outputs, expected.outputs);
    } catch (const Error& error) {
      Note(op, error.what());
    }
    return std::move(expected.outputs);
  }

  void CompareOutputs(const Op& op, const OpInHalf& in_half, const NamedTensors& found,
                      const NamedTensors& exact) {
    const OpDef& def = DefaultOpRegistry().Get(op.type);
    const auto compare = [&](const SlotDef& slot, size_t i, const std::string& name) {
      const bool is_float = exact.at(name).dtype() == DType::kFloat32;
      const DType dtype = is_float ? in_half.OutputDType(slot, i) : exact.at(name).dtype();
      const Tensor rounded = is_float ? Cast(exact.at(name), dtype) : exact.at(name);
      const std::string difference = Difference(found.at(name), rounded);
      if (!difference.empty()) Note(op, StrCat(name, " ", difference));
    };
    ForEachArgument(def.outputs, op.outputs, compare);
  }

  void Note(const Op& op, const std::string& problem) {
    problems_[op.type].push_back(StrCat(where_, ": ", op.type, ": ", problem));
  }

  Place place_;
  std::string where_;
  std::map<std::string, std::vector<std::string>> problems_;
  std::set<std::string> run_in_half_;
  std::set<std::string> widened_;
};

// A table of a lookup has two dims, and so have the selected rows that it makes.
bool CanBeFed(const Array& array) { return !array.is_selected_rows() || array.shape.rank() == 2; }

// Whether the case is one of float32, of an op that takes half, too.
bool RunsInHalf(const OpCase& op_case) {
  const OpDef& def = DefaultOpRegistry().Get(op_case.type);
  if (op_case.benchmark_only || def.precision == Precision::kNone ||
      std::ranges::count(op_case.dtypes, DType::kFloat32) == 0) {
    return false;
  }
  return std::ranges::all_of(op_case.inputs, [](const auto& slot) {
    return std::ranges::all_of(slot.second, [](const Array& array) {
      return CanBeFed(array) && array.shape.element_count() <= kMaxElements;
    });
  });
}

// What all cases show on the CPU. The first call runs them.
const HalfCheck& OnCpu() {
  static const HalfCheck& check = *[] {
    auto* made = new HalfCheck(Place::Cpu());
    std::map<std::string, size_t> cases;
    for (const OpCase& op_case : AllCases()) {
      if (!RunsInHalf(op_case)) continue;
      made->Run(op_case, DType::kBFloat16);
      if (++cases[op_case.type] <= kCasesInFloat16) made->Run(op_case, DType::kFloat16);
    }
    return made;
  }();
  return check;
}

void ExpectNoProblemsBut(const std::map<std::string, std::string>& exceptions,
                         const HalfCheck& check) {
  for (const auto& [type, problems] : check.problems()) {
    if (exceptions.contains(type)) continue;
    for (size_t i = 0; i < std::min(problems.size(), kMaxShownProblems); ++i) {
      ADD_FAILURE() << problems[i];
    }
  }
}

TEST(OpsInHalf, HaveTheBitsOfRoundedFloat32) {
  ExpectNoProblemsBut(Exceptions(), OnCpu());
  for (const auto& [type, reason] : Exceptions()) {
    EXPECT_TRUE(OnCpu().problems().contains(type))
        << type << " has the right bits by now: take it off the list (" << reason << ")";
  }
}

// Returns why there is no device; empty if there is one.
std::string WhyNoDevice() {
  try {
    AllocatorOf(CudaPlace());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// What the cases show on the device. The first call runs them.
const HalfCheck& OnDevice() {
  static const HalfCheck& check = *[] {
    auto* made = new HalfCheck(CudaPlace());
    std::map<std::string, size_t> cases;
    for (const OpCase& op_case : AllCases()) {
      if (!RunsInHalf(op_case)) continue;
      made->Run(op_case, DType::kBFloat16);
      if (++cases[op_case.type] <= kCasesInFloat16OnDevice) made->Run(op_case, DType::kFloat16);
    }
    return made;
  }();
  return check;
}

TEST(OpsInHalf, HaveTheBitsOfRoundedFloat32OnADevice) {
  if (const std::string why = WhyNoDevice(); !why.empty()) GTEST_SKIP() << why;
  ExpectNoProblemsBut(Exceptions(), OnDevice());
}

// Whether half may reach the op: its rule isn't kNone, and it takes arrays, or floats by a kernel.
bool MayRunInHalf(const std::string& type) {
  const OpRegistry& registry = DefaultOpRegistry();
  const auto takes_floats = [](const KernelDef& kernel) {
    return kernel.place == PlaceKind::kCpu && kernel.dtype == DType::kFloat32;
  };
  return registry.Get(type).precision != Precision::kNone &&
         std::ranges::any_of(registry.Kernels(type), takes_floats);
}

TEST(OpsInHalf, AreAllThatTakeHalf) {
  for (const std::string& type : DefaultOpRegistry().Types()) {
    const bool is_missing = MayRunInHalf(type) && !OnCpu().run_in_half().contains(type);
    EXPECT_EQ(is_missing, TestedElsewhere().contains(type))
        << type
        << (is_missing ? " has no case that runs in half" : " runs here: take it off the list");
  }
}

void ExpectWidenedAsListed(const std::set<std::string>& found, const std::string& file,
                           size_t most) {
  std::set<std::string> listed;
  std::istringstream lines(ReadFile("tests/operators/" + file));
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != '#') listed.insert(line);
  }
  for (const std::string& type : found) {
    EXPECT_TRUE(listed.contains(type))
        << type << " has no kernel for half: expected one (" << file << ")";
  }
  for (const std::string& type : listed) {
    EXPECT_TRUE(found.contains(type)) << type << " isn't widened any more: take it off " << file;
  }
  EXPECT_LE(listed.size(), most);
}

TEST(OpsInHalf, AreWidenedAsTheListSays) {
  ExpectWidenedAsListed(OnCpu().widened(), "ops_widened_on_cpu.txt", kMostWidenedOnCpu);
}

TEST(OpsInHalf, AreWidenedOnADeviceAsTheListSays) {
  if (const std::string why = WhyNoDevice(); !why.empty()) GTEST_SKIP() << why;
  ExpectWidenedAsListed(OnDevice().widened(), "ops_widened_on_cuda.txt", kMostWidenedOnDevice);
}

}  // namespace
}  // namespace skiff::harness
