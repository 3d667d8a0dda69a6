// Lists of parameters on CUDA, where cases don't suffice: tensors at odd addresses, tensors that
// move, a captured graph, and several steps. Skipped if there is no device.
#include <gtest/gtest.h>

#ifdef WITH_CUDA

#include <cuda_runtime.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "memory/cuda_device.h"
#include "memory/device.h"
#include "memory/places.h"
#include "operators/optimizer/optimizer_ops.h"
#include "tests/harness/case_op.h"
#include "tests/harness/cuda_place.h"
#include "tests/harness/prepared_op.h"
#include "tests/operators/optimizer/update_list_case.h"

namespace skiff::harness {
namespace {

using Parameter = ListedParameter;
using Precision = UpdatePrecision;

// Returns whether the op keeps averages or sums; then it updates no parameter.
bool IsAverage(const OpDef& def) { return def.FindInput("LearningRate") == nullptr; }

std::vector<Precision> PrecisionsOf(const OpDef& def) {
  if (IsAverage(def)) return {{}, {.param = DType::kFloat64}};
  return UpdatePrecisions();
}

// A parameter's count, fewer than 4, or decay product.
Array ScalarOfAverage(const std::string& slot, uint64_t number) {
  if (slot == "DecayProduct") {
    return Values({1}, {1.0 / static_cast<double>(1 + number)}, DType::kFloat64);
  }
  const uint64_t more = slot == "in_num_updates" ? 4 : 0;
  return Values({1}, {static_cast<double>(number % 4 + more)}, DType::kInt64);
}

// A window is full at half of all updates, from 4 to 8 of them.
OpCase AverageCaseOf(const OpDef& def, const std::vector<Parameter>& parameters, DType dtype) {
  OpCase result{.name = "lists", .type = def.type};
  for (const StaticText slot : def.update->lists) {
    const uint64_t seed = 1000 * result.inputs.size();
    for (const auto& [number, count] : parameters) {
      result.inputs[slot].push_back(
          IsScalarSlot(def, slot) ? ScalarOfAverage(slot, number)
                                  : InDType(dtype, Uniform({count}, seed + number, 0.25, 0.75)));
    }
  }
  for (const auto& [input, output] : def.in_place) {
    result.outputs.emplace_back(output, static_cast<int>(parameters.size()));
  }
  if (def.FindInput("SkipUpdate") != nullptr) {
    result.inputs["SkipUpdate"] = {Values({1}, {0}, DType::kBool)};
  }
  if (def.FindInput("Count") != nullptr) {
    // The second of three sums.
    result.inputs["Count"] = {Values({1}, {2}, DType::kInt64)};
    result.attrs = {{"steps", int64_t{3}}, {"mean", true}};
  } else if (def.FindInput("ThresSteps") != nullptr) {
    result.inputs["ThresSteps"] = {Values({1}, {20}, DType::kInt64)};
    result.attrs["decay"] = 0.9375f;
  } else {
    result.attrs = {{"average_window", 0.5f},
                    {"min_average_window", int64_t{4}},
                    {"max_average_window", int64_t{8}},
                    {"max_num_accumulates", int64_t{5}}};
  }
  return result;
}

OpCase CaseOf(const OpDef& def, const std::vector<Parameter>& parameters, Precision precision) {
  return IsAverage(def) ? AverageCaseOf(def, parameters, precision.param)
                        : UpdateListCase(def, parameters, precision);
}

// An op in place, whose tensors begin `offset` bytes after aligned addresses, or an element if
// that is larger; but for selected rows.
class PlacedUpdate {
 public:
  PlacedUpdate(const OpRegistry& registry, const std::string& type,
               const std::vector<Parameter>& parameters, Precision precision, int64_t offset = 0,
               Place place = CudaPlace())
      : PlacedUpdate(registry, CaseOf(registry.Get(type), parameters, precision), offset, place) {}

  PlacedUpdate(const OpRegistry& registry, const OpCase& op_case, int64_t offset, Place place)
      : def_(registry.Get(op_case.type)),
        op_(MakeOp(op_case)),
        inputs_(MakeInputs(op_case, DType::kFloat32)),
        offset_(offset),
        device_{.place = place, .stream = place.is_cpu() ? nullptr : stream_.get()} {
    const OpContext context = ContextOf(def_, op_, inputs_, {}, place);
    PrepareContext prepare(op_, def_, {context.inputs().begin(), context.inputs().end()},
                           {context.outputs().begin(), context.outputs().end()}, place);
    kernel_ = registry.SelectKernel(context).prepare(prepare);
    for (const int64_t bytes : prepare.workspace_bytes()) {
      Tensor& workspace = workspaces_.emplace_back(Shape{bytes}, DType::kUint8, place);
      run_.workspaces.push_back(workspace.raw_data());
    }
    run_.device_context = &device_;
    for (const std::string& name : InputOrder(def_, op_)) {
      run_.inputs.push_back(&tensors_.emplace_back(OnDevice(inputs_.at(name))));
      tensor_of_[name] = run_.inputs.back();
    }
    run_.outputs.resize(context.outputs().size());
    for (const auto& [input, output] : def_.in_place) {
      for (size_t i = 0; i < op_.Input(input).size(); ++i) {
        const int out = context.OutputIndex(output, i);
        if (out < 0) continue;
        run_.outputs[static_cast<size_t>(out)] =
            run_.inputs[static_cast<size_t>(context.InputIndex(input, i))];
      }
    }
  }

  void Run() {
    kernel_->Bind(run_);
    kernel_->Run(run_);
  }

  // Another value of an input.
  void Set(const std::string& name, const Tensor& value) {
    stream_->Wait();
    CopyTensor(value, tensor_of_.at(name));
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }

  // To other addresses.
  void Move() {
    stream_->Wait();
    left_behind_ = tensors_;
    for (Tensor& tensor : tensors_) tensor = OnDevice(CopyToCpu(tensor));
  }

  // Returns the values of the inputs that Move has left behind.
  std::vector<std::vector<double>> ValuesLeftBehind() const {
    stream_->Wait();
    std::vector<std::vector<double>> values;
    for (const Tensor& tensor : left_behind_) values.push_back(ToArray(CopyToCpu(tensor)).values);
    return values;
  }

  // Returns the values of all parameters and states, one vector per tensor.
  std::vector<std::vector<double>> Values() const {
    stream_->Wait();
    std::vector<std::vector<double>> values;
    for (const Tensor* output : run_.outputs) {
      values.push_back(ToArray(CopyToCpu(*output)).values);
    }
    return values;
  }

  // Captures a run as a graph.
  cudaGraph_t Capture() {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamBeginCapture(Handle(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
    Run();
    EXPECT_EQ(cudaStreamEndCapture(Handle(), &graph), cudaSuccess);
    return graph;
  }

  void Launch(cudaGraph_t graph, int times) {
    cudaGraphExec_t executable = nullptr;
    EXPECT_EQ(cudaGraphInstantiateWithFlags(&executable, graph, 0), cudaSuccess);
    for (int i = 0; i < times; ++i) {
      EXPECT_EQ(cudaGraphLaunch(executable, Handle()), cudaSuccess);
    }
    stream_->Wait();
    EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  }

 private:
  cudaStream_t Handle() const { return static_cast<cudaStream_t>(stream_->handle()); }

  Tensor OnDevice(const Tensor& value) const {
    const bool is_odd = offset_ != 0 && !value.is_selected_rows();
    const int64_t offset = is_odd ? std::max(offset_, SizeOf(value.dtype())) : 0;
    Tensor placed(value.shape(), value.dtype(), device_.place, value.layout());
    if (is_odd) {
      placed =
          Tensor(value.shape(), value.dtype(),
                 std::make_shared<Buffer>(AllocatorOf(device_.place), value.byte_count() + offset),
                 offset);
    }
    CopyTensor(value, &placed);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    return placed;
  }

  const std::unique_ptr<DeviceStream> stream_ = DeviceOf(CudaPlace()).MakeStream();
  const OpDef& def_;
  Op op_;
  NamedTensors inputs_;
  int64_t offset_;
  DeviceContext device_;
  std::deque<Tensor> tensors_;
  std::map<std::string, Tensor*> tensor_of_;  // of inputs
  std::deque<Tensor> left_behind_;
  std::deque<Tensor> workspaces_;
  std::unique_ptr<Kernel> kernel_;
  KernelContext run_;
};

size_t NodesOf(cudaGraph_t graph) {
  size_t count = 0;
  EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &count), cudaSuccess);
  return count;
}

class UpdateOnCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasCudaDevice()) GTEST_SKIP() << "no device";
    use_.emplace(&DeviceOf(CudaPlace()));
    RegisterOptimizerOps(registry_);
    for (const std::string& type : registry_.Types()) {
      if (!registry_.Get(type).update.has_value()) continue;
      const auto is_on_cuda = [](const KernelDef& kernel) {
        // One for selected rows alone takes no lists.
        return kernel.place == PlaceKind::kCuda && !kernel.selected_rows;
      };
      if (std::ranges::any_of(registry_.Kernels(type), is_on_cuda)) types_.push_back(type);
    }
    EXPECT_GE(types_.size(), 16U);
  }

  // Every op, on parameters of every kind.
  void ForEachKind(
      const std::function<void(const std::string& type, Precision precision)>& body) const {
    for (const std::string& type : types_) {
      for (const Precision& precision : PrecisionsOf(registry_.Get(type))) {
        SCOPED_TRACE(StrCat(type, " ", precision.param, " ", precision.grad));
        body(type, precision);
      }
    }
  }

  std::optional<DeviceUse> use_;
  OpRegistry registry_;
  std::vector<std::string> types_;
};

// Sizes of several chunks, of parts of packs, and of no elements.
const std::vector<int64_t> kCounts = {1, 12293, 7, 0, 300, 4096};

TEST_F(UpdateOnCuda, AddressesChangeNoBit) {
  ForEachKind([&](const std::string& type, Precision precision) {
    PlacedUpdate aligned(registry_, type, ListedParameters(kCounts), precision);
    PlacedUpdate odd(registry_, type, ListedParameters(kCounts), precision, 4);
    aligned.Run();
    odd.Run();
    EXPECT_EQ(aligned.Values(), odd.Values()) << type;
  });
}

// The gradient of one parameter, in rows that packs fill and in rows that they don't.
TEST_F(UpdateOnCuda, AddressesChangeNoBitOfASparseUpdate) {
  constexpr int64_t kRows = 9;
  ForEachKind([&](const std::string& type, Precision precision) {
    const OpDef& def = registry_.Get(type);
    if (IsAverage(def)) return;
    for (const int64_t width : {8, 7}) {
      OpCase op_case = CaseOf(def, ListedParameters({kRows * width}), precision);
      for (auto& [slot, arrays] : op_case.inputs) {
        for (Array& array : arrays) {
          if (array.shape[0] == kRows * width) array.shape = {kRows, width};
        }
      }
      const Array slots = InDType(precision.grad, Uniform({5, width}, 1, 0.25, 0.75));
      op_case.inputs["Grad"] = {SelectedRows(slots, {3, 0, 3, -1, 8}, kRows)};
      PlacedUpdate aligned(registry_, op_case, 0, CudaPlace());
      PlacedUpdate odd(registry_, op_case, 4, CudaPlace());
      aligned.Run();
      odd.Run();
      EXPECT_EQ(aligned.Values(), odd.Values()) << type << ", width " << width;
    }
  });
}

TEST_F(UpdateOnCuda, AListChangesNoBit) {
  ForEachKind([&](const std::string& type, Precision precision) {
    const std::vector<Parameter> parameters = ListedParameters(kCounts);
    PlacedUpdate list(registry_, type, parameters, precision);
    list.Run();
    const std::vector<std::vector<double>> of_list = list.Values();
    for (size_t i = 0; i < parameters.size(); ++i) {
      PlacedUpdate alone(registry_, type, {parameters[i]}, precision);
      alone.Run();
      const std::vector<std::vector<double>> found = alone.Values();
      // Slots are in one order, and each has one argument per parameter.
      for (size_t slot = 0; slot < found.size(); ++slot) {
        EXPECT_EQ(found[slot], of_list[slot * parameters.size() + i]) << type << " " << slot;
      }
    }
  });
}

TEST_F(UpdateOnCuda, TensorsMayMove) {
  ForEachKind([&](const std::string& type, Precision precision) {
    PlacedUpdate moving(registry_, type, ListedParameters(kCounts), precision);
    PlacedUpdate resting(registry_, type, ListedParameters(kCounts), precision);
    for (int step = 0; step < 3; ++step) {
      moving.Run();
      moving.Move();
      resting.Run();
    }
    EXPECT_EQ(moving.Values(), resting.Values()) << type;
  });
}

TEST_F(UpdateOnCuda, LaunchesDoNotGrowWithTheList) {
  constexpr size_t kMost = 4;
  ForEachKind([&](const std::string& type, Precision precision) {
    PlacedUpdate few(registry_, type, ListedParameters({5, 6}), precision);
    PlacedUpdate many(registry_, type, ListedParameters(std::vector<int64_t>(700, 9)), precision);
    std::vector<size_t> launches;
    for (PlacedUpdate* update : {&few, &many}) {
      update->Run();
      cudaGraph_t graph = update->Capture();
      launches.push_back(NodesOf(graph));
      EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    }
    EXPECT_EQ(launches[0], launches[1]) << type;
    EXPECT_LE(launches[0], kMost) << type;
  });
}

TEST_F(UpdateOnCuda, AGraphDoesWhatRunsDo) {
  ForEachKind([&](const std::string& type, Precision precision) {
    for (const bool runs_before : {false, true}) {
      PlacedUpdate captured(registry_, type, ListedParameters(kCounts), precision);
      PlacedUpdate plain(registry_, type, ListedParameters(kCounts), precision);
      if (runs_before) captured.Run();
      cudaGraph_t graph = captured.Capture();
      captured.Launch(graph, runs_before ? 2 : 3);
      EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
      captured.Run();
      for (int step = 0; step < 4; ++step) plain.Run();
      EXPECT_EQ(captured.Values(), plain.Values()) << type << " " << runs_before;
    }
  });
}

// A graph updates the tensors that it was captured with, whatever later runs update.
TEST_F(UpdateOnCuda, AGraphKeepsItsTensors) {
  ForEachKind([&](const std::string& type, Precision precision) {
    PlacedUpdate captured(registry_, type, ListedParameters({5}), precision);
    captured.Run();
    cudaGraph_t graph = captured.Capture();
    captured.Move();
    captured.Run();
    const std::vector<std::vector<double>> moved = captured.Values();
    const std::vector<std::vector<double>> left_behind = captured.ValuesLeftBehind();
    captured.Launch(graph, 1);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    EXPECT_EQ(captured.Values(), moved) << type;
    EXPECT_NE(captured.ValuesLeftBehind(), left_behind) << type;
  });
}

// Their steps cross every boundary of a window, most often those of one parameter at a time.
TEST_F(UpdateOnCuda, AveragesHaveTheBitsOfTheCpu) {
  constexpr int kSteps = 24;
  const std::vector<Parameter> parameters = ListedParameters(kCounts);
  ForEachKind([&](const std::string& type, Precision precision) {
    const OpDef& def = registry_.Get(type);
    if (!IsAverage(def)) return;
    for (const int64_t offset : {0, 4}) {
      PlacedUpdate on_cuda(registry_, type, parameters, precision, offset);
      PlacedUpdate on_cpu(registry_, type, parameters, precision, 0, Place::Cpu());
      for (int step = 0; step < kSteps; ++step) {
        NamedTensors changed;
        for (const auto& [number, count] : parameters) {
          const Array value = Uniform({count}, 100 * number + static_cast<uint64_t>(step));
          changed[VariableName(def.update->lists.front(), number)] =
              ToTensor(value, precision.param);
        }
        if (def.FindInput("SkipUpdate") != nullptr) {
          changed[VariableName("SkipUpdate", 0)] = Tensor::FromValues<bool>({1}, {step % 5 == 3});
        }
        if (def.FindInput("ThresSteps") != nullptr) {
          changed[VariableName("ThresSteps", 0)] =
              Tensor::FromValues<int64_t>({1}, {16 * step - 1});
        }
        for (PlacedUpdate* update : {&on_cuda, &on_cpu}) {
          for (const auto& [name, value] : changed) update->Set(name, value);
          update->Run();
        }
        ASSERT_EQ(on_cuda.Values(), on_cpu.Values()) << type << " step " << step;
      }
    }
  });
}

}  // namespace
}  // namespace skiff::harness

#else

TEST(UpdateOnCuda, IsBuilt) { GTEST_SKIP() << "built without CUDA"; }

#endif
