// Runs the prepared instructions of a plan: of a program's plan, or of the body of a loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/executor/device/device_link.h"
#include "framework/executor/run/bound_kernel.h"
#include "framework/executor/run/plan_kernels.h"
#include "framework/executor/run/row_kernels.h"
#include "framework/executor/run/timed_body.h"
#include "framework/executor/storage/arena_poison.h"
#include "framework/executor/storage/bound_values.h"
#include "framework/plan/plan.h"

namespace skiff {

// The owner runs the instructions in order, and passes to Run the work for each instruction, often
// just kernel(i).Run().
class PlanRunner {
 public:
  struct Inputs {
    const Plan& plan;
    const KernelEnvironment& environment;
    ValueTensors* values = nullptr;
    const RunState* state = nullptr;
    // Returns the tensors that the kernel of an instruction sees. Empty: `values`.
    std::function<ValueTensors*(size_t)> values_of = {};
    // Returns whether an instruction may have other rows than planned. Empty: never.
    std::function<bool(const Instruction&)> varies = {};
    // Returns the plan with the current rows, before an instruction whose rows vary.
    std::function<const Plan&(size_t)> current_plan = {};
  };
  // How the time of an instruction on a device is taken.
  enum class Clock {
    kEvents,  // around it in the stream: for a plan that runs once
    kWaits,   // by waits for the device: any number of times
  };
  // The costs of kernels for other rows than planned.
  struct Preparations {
    int64_t kernels = 0;
    double seconds = 0;
  };

  // `kernels`: by instruction. The storage is planned. Throws an Error (kResourceExhausted) if
  // there is no memory for workspaces and derived forms. Binds no kernel yet. All arguments except
  // the kernels must outlive the object.
  PlanRunner(const Inputs& inputs, std::vector<PreparedKernel> kernels);

  size_t size() const { return steps_.size(); }
  // Returns the kernel that currently runs an instruction.
  BoundKernel& kernel(size_t i) const { return *steps_[i].current; }
  bool Varies(size_t i) const { return steps_[i].varies; }
  bool ReadsFeed(size_t i) const { return steps_[i].reads_feed; }
  // Returns whether the instruction writes a variable of the scope, other than an array.
  bool WritesVariable(size_t i) const { return !steps_[i].written_versions.empty(); }
  // Returns the bytes of the storage that derived forms keep from run to run.
  int64_t kept_bytes() const;
  // BoundKernel::SetFault, for all kernels of the instruction.
  void SetFault(size_t i, uint64_t* word);

  // Bind the current kernels: of all instructions, of the instructions that read feeds, or of all
  // other instructions. Throw the Errors of BoundKernel::Bind.
  void Bind();
  void BindFeedReaders();
  void BindAllButFeedReaders();
  // Must come when the arena has moved, and Bind after it.
  void FollowArena();
  // Choose kernels for the current rows of the values: for all instructions whose kernels don't
  // take fewer rows than prepared, or for an instruction if its kernel doesn't. Throw the Errors of
  // PrepareKernel.
  void ChooseKernels();
  void ChooseKernel(size_t i);
  // Returns the costs of the kernels prepared since the last call.
  Preparations TakePreparations() { return std::exchange(preparations_, {}); }

  // Poisons all memory of the plan, if dead memory is poisoned: before the first instruction.
  void Poison() const {
    if (poison_) poison_->PoisonAll();
  }
  // Calls work(), which runs the instruction; then notes the written variables and poisons dead
  // memory. Gives an Error the place of the op.
  template <typename Work>
  void Run(size_t i, const Work& work) {
    Locate(i, [&] {
      Time(i, work);
      NoteWrites(i);
      if (poison_) poison_->PoisonAfter(i);
    });
  }
  // The parts of Run. Calls work(), which may change `i`, and gives an Error the place of the op.
  template <typename Work>
  void Locate(const size_t& i, const Work& work) const {
    try {
      work();
    } catch (const Error& error) {
      ThrowIn(error, plan_.instructions[i]);
    }
  }
  // Calls work(). While times are taken, adds the seconds to the time of the instruction.
  template <typename Work>
  void Time(size_t i, const Work& work) {
    is_timed() ? Measure(i, work) : work();
  }
  // Runs the kernel of an instruction in the communication stream, with an Error's place and its
  // time: in the thread of that stream. The caller then calls NoteWrites in the thread of the run.
  void RunBeside(size_t i) {
    Locate(i, [&] { Time(i, [&] { kernel(i).Run(); }); });
  }
  // Calls wait(), which has the main stream wait for the communication stream before the
  // instruction. While times are taken, adds the seconds to the waits of the instruction.
  template <typename Wait>
  void TimeWait(size_t i, const Wait& wait) {
    is_timed() ? MeasureWait(i, wait) : wait();
  }
  // Advances the versions of the variables that the instruction has written: derived forms of the
  // variables are out of date, in all plans.
  void NoteWrites(size_t i) {
    for (uint64_t* version : steps_[i].written_versions) ++*version;
  }

  // Takes times from now on, also in the bodies of loops, until StopTiming.
  void StartTiming(Clock clock);
  bool is_timed() const { return clock_.has_value(); }
  // Returns the time of each instruction, in order, then of each instruction in bodies (TimedBody).
  // The device must have finished its work. Throws Error (kIo) if the device has failed.
  std::vector<InstructionTime> StopTiming();
  // Instead of StopTiming, when a run has failed.
  void AbandonTiming();

 private:
  // An instruction, ready to run.
  struct Step {
    std::unique_ptr<BoundKernel> planned;     // prepared for the shapes of the plan
    BoundKernel* current = nullptr;           // the kernel that runs now
    RowKernels for_rows;                      // if its kernel doesn't take fewer
    std::vector<uint64_t*> written_versions;  // of the scope variables that it writes
    uint64_t* fault = nullptr;
    bool varies = false;
    bool is_fixed = false;    // its rows vary, but the kernel doesn't take fewer rows
    bool reads_feed = false;  // an argument may be elsewhere in each run
    double seconds = 0;       // since StartTiming
    double waited_seconds = 0;
  };
  // The time of an instruction on a device, or of its wait: between two events.
  struct DeviceTime {
    size_t instruction = 0;
    double InstructionTime::*seconds = nullptr;
    std::unique_ptr<DeviceEvent> start;
    std::unique_ptr<DeviceEvent> end;
  };

  Step MakeStep(size_t i, PreparedKernel kernel) const;
  std::unique_ptr<BoundKernel> BoundFor(size_t i, PreparedKernel kernel,
                                        const std::vector<int64_t>& workspace_bytes) const;
  std::unique_ptr<BoundKernel> PrepareForRows(size_t i);
  void Measure(size_t i, const std::function<void()>& work);
  void MeasureWait(size_t i, const std::function<void()>& wait);
  // `stream`: where the work goes. `seconds`: where the time goes.
  void MeasureByEvents(size_t i, DeviceStream* stream, double InstructionTime::*seconds,
                       const std::function<void()>& work);
  DeviceStream* StreamOf(size_t i) const;

  const Plan& plan_;
  const KernelEnvironment& environment_;
  DeviceLink& link_;
  ValueTensors& values_;
  const RunState& state_;
  const std::function<ValueTensors*(size_t)> values_of_;
  const std::function<const Plan&(size_t)> current_plan_;
  std::vector<Step> steps_;  // by instruction
  std::vector<size_t> feed_readers_;
  std::vector<size_t> fixed_;
  Preparations preparations_;
  std::optional<ArenaPoison> poison_;  // if dead memory is poisoned
  std::optional<Clock> clock_;         // while times are taken
  std::vector<DeviceTime> device_times_;
};

}  // namespace skiff
