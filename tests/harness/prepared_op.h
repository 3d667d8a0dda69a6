// One op without a program: shapes inferred, kernel selected and prepared, and every argument,
// workspace and derived form in guarded memory of its own, on the op's place. Inputs and outputs of
// the functions are on the CPU. The op must outlive the object.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/registry.h"
#include "memory/device.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/guarded_block.h"

namespace skiff::harness {

using VariablePairs = std::vector<std::pair<std::string, std::string>>;

// How to run it.
struct OpSettings {
  Place place = Place::Cpu();
  // The kernel candidate; empty: the accepting one with the highest priority.
  std::string candidate;
  // By variable; all others are plain.
  std::map<std::string, Layout> layouts;
  // Pairs {input variable, output variable} that share storage. Error unless their bytes are equal.
  VariablePairs in_place;
  // Whether later runs may have fewer rows.
  bool rows_vary = false;
  MathMode math = MathMode::kFull;
  // Of the place, for a collective op; nullptr: there is one rank. It must outlive the runs.
  Communicator* communicator = nullptr;
};

// Returns one meta per variable of InputOrder, with the given layouts. Throws Error for a variable
// without tensor.
std::vector<TensorMeta> InputMetas(const OpDef& def, const Op& op, const NamedTensors& inputs,
                                   const std::map<std::string, Layout>& layouts = {});
// Returns the metas that the shape rule gives to the variables of OutputOrder. Throws Error if the
// rule leaves out a variable.
std::vector<TensorMeta> InferOutputMetas(const OpDef& def, const Op& op,
                                         const std::vector<TensorMeta>& inputs);
// Returns both, as kernel selection sees them.
OpContext ContextOf(const OpDef& def, const Op& op, const NamedTensors& inputs,
                    const std::map<std::string, Layout>& layouts = {}, Place place = Place::Cpu());

class PreparedOp {
 public:
  // Throws the Errors of the op's checks, shape rule and factory.
  PreparedOp(const OpRegistry& registry, const Op& op, const NamedTensors& inputs,
             const OpSettings& settings = {});
  PreparedOp(const PreparedOp&) = delete;
  PreparedOp& operator=(const PreparedOp&) = delete;

  // Copies plain inputs in, which must have the shapes given at construction, and fills outputs,
  // workspaces and derived forms with `poison`. Then refreshes the derived forms.
  void Load(const NamedTensors& inputs, unsigned char poison);
  // The same for inputs with fewer rows: tensors get the shapes and LoDs that follow from these.
  // Unused memory of tensors is filled with `poison` in outputs and NaN in inputs.
  void LoadFewerRows(const NamedTensors& inputs, unsigned char poison);
  // Overwrites the data of an input, unless an output shares it. For selected rows, sets row
  // numbers to a legal one.
  void PoisonInput(const std::string& name, unsigned char poison);
  // Takes an input away, except for its LoD, until the next Load: where only shapes count, a plan
  // may keep no tensor at all.
  void TakeInputAway(const std::string& name);
  // Runs the kernel. On a device, only issues it.
  void Run();
  // Waits until all issued work is done. Throws the kernel's Error for data that it refused on a
  // device.
  void Wait() const;
  // Returns plain copies of the outputs.
  NamedTensors Outputs() const;
  // Returns the forbidden writes of the last Run: out of bounds, into an input, into the padding of
  // an output, or after the rows in use.
  std::vector<std::string> Faults() const;

  const std::string& candidate() const { return candidate_; }
  bool accepts_fewer_rows() const { return kernel_->AcceptsFewerRows(); }
  // The bytes of all inputs and outputs.
  int64_t argument_bytes() const;
  // The bytes of all workspaces, the scratch memory of a run.
  int64_t workspace_bytes() const;

 private:
  struct Argument {
    std::string name;
    Tensor tensor;
    GuardedBlock* block = nullptr;
    Tensor before;  // the contents of an input before the run
    std::optional<Tensor> taken_away;
    bool shared = false;   // an input whose storage an output shares
    bool dynamic = false;  // an output whose shape the kernel finds
  };

  GuardedBlock* NewBlock(int64_t bytes);
  void AddInputs(const std::vector<TensorMeta>& metas);
  void AddOutputs(const std::vector<std::string>& names, const std::vector<TensorMeta>& metas,
                  const VariablePairs& in_place);
  Argument* FindInput(const std::string& name);

  const OpDef& def_;
  const Op& op_;
  std::string candidate_;
  std::deque<GuardedBlock> blocks_;
  std::deque<Argument> inputs_;
  std::deque<Argument> outputs_;
  std::vector<GuardedBlock*> workspaces_;
  std::vector<GuardedBlock*> derived_;
  GuardedBlock* fault_ = nullptr;  // on a device: KernelContext::fault
  std::vector<DerivedForm> derived_forms_;
  unsigned char poison_ = 0;  // of the last Load
  // Of a device. Kernels that send tables free the tables in their destructor, after the work in
  // the stream.
  std::unique_ptr<DeviceStream> stream_;
  std::unique_ptr<Kernel> kernel_;
  KernelContext context_;
  DeviceContext device_;
  uint64_t seed_ = 20240229;
  uint64_t step_ = 3;
};

}  // namespace skiff::harness
