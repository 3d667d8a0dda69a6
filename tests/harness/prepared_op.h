// One op outside of any program: shapes inferred, kernel chosen and prepared, every argument,
// workspace and derived form in guarded memory of its own, on the op's place. What goes in and
// comes out is on the CPU. The op must outlive it.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/registry.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/guarded_block.h"

namespace skiff::harness {

using VariablePairs = std::vector<std::pair<std::string, std::string>>;

// How to run it.
struct OpSettings {
  Place place = Place::Cpu();
  // The kernel candidate; empty: the one of the highest priority that accepts.
  std::string candidate;
  // Of variables; whoever is absent is plain.
  std::map<std::string, Layout> layouts;
  // {input variable, output variable} that share storage. Error unless their bytes agree.
  VariablePairs in_place;
};

// One meta a variable of InputOrder, with the given layouts. Error for a variable without tensor.
std::vector<TensorMeta> InputMetas(const OpDef& def, const Op& op, const NamedTensors& inputs,
                                   const std::map<std::string, Layout>& layouts = {});
// What the shape rule says of the variables of OutputOrder. Error if it leaves one out.
std::vector<TensorMeta> InferOutputMetas(const OpDef& def, const Op& op,
                                         const std::vector<TensorMeta>& inputs);
// Both, as kernel selection sees them.
OpContext ContextOf(const OpDef& def, const Op& op, const NamedTensors& inputs,
                    const std::map<std::string, Layout>& layouts = {}, Place place = Place::Cpu());

class PreparedOp {
 public:
  // Error as the op's checks, shape rule and factory throw them.
  PreparedOp(const OpRegistry& registry, const Op& op, const NamedTensors& inputs,
             const OpSettings& settings = {});
  PreparedOp(const PreparedOp&) = delete;
  PreparedOp& operator=(const PreparedOp&) = delete;

  // Copies plain inputs of the shapes given at construction in, and fills outputs, workspaces and
  // derived forms with `poison`; then refreshes the derived forms.
  void Load(const NamedTensors& inputs, unsigned char poison);
  // Overwrites the data of an input (but not one that an output shares); row numbers of selected
  // rows with one that may be there.
  void PoisonInput(const std::string& name, unsigned char poison);
  // The kernel alone; on a device it is issued, not done.
  void Run();
  // Until what was issued is done.
  void Wait() const;
  // Plain copies of the outputs.
  NamedTensors Outputs() const;
  // What a kernel must never do and this one did in the last Run: writes out of bounds, into an
  // input, or into the padding of an output.
  std::vector<std::string> Faults() const;

  const std::string& candidate() const { return candidate_; }
  // Bytes of all inputs and outputs.
  int64_t argument_bytes() const;

 private:
  struct Argument {
    std::string name;
    Tensor tensor;
    GuardedBlock* block = nullptr;
    Tensor before;         // what an input held before the run
    bool shared = false;   // an input whose storage an output shares
    bool dynamic = false;  // an output whose shape the kernel finds
  };

  GuardedBlock* NewBlock(int64_t bytes);
  void AddInputs(const std::vector<std::string>& names, const std::vector<TensorMeta>& metas);
  void AddOutputs(const std::vector<std::string>& names, const std::vector<TensorMeta>& metas,
                  const VariablePairs& in_place);
  Argument* FindInput(const std::string& name);

  const OpDef& def_;
  std::string candidate_;
  std::deque<GuardedBlock> blocks_;
  std::deque<Argument> inputs_;
  std::deque<Argument> outputs_;
  std::vector<GuardedBlock*> workspaces_;
  std::vector<GuardedBlock*> derived_;
  std::vector<DerivedForm> derived_forms_;
  std::unique_ptr<Kernel> kernel_;
  KernelContext context_;
  DeviceContext device_;
  uint64_t seed_ = 20240229;
  uint64_t step_ = 3;
};

}  // namespace skiff::harness
