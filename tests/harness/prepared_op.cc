#include "tests/harness/prepared_op.h"

#include <algorithm>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/op/host_slots.h"
#include "framework/op/infer_outputs.h"
#include "memory/places.h"

namespace skiff::harness {
namespace {

// No shape rule sets this dim.
constexpr int64_t kNotInferred = -99;

Layout LayoutOf(const std::map<std::string, Layout>& layouts, const std::string& name) {
  const auto it = layouts.find(name);
  return it == layouts.end() ? Layout::Plain() : it->second;
}

void SetOutputLayouts(const std::vector<std::string>& names,
                      const std::map<std::string, Layout>& layouts,
                      std::vector<TensorMeta>* metas) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (!(*metas)[i].is_selected_rows()) (*metas)[i].layout = LayoutOf(layouts, names[i]);
  }
}

// Fills in one legal row number for all slots: ops may rely on row numbers that exist, since
// whoever creates selected rows checks them.
void FillRowNumbers(unsigned char byte, Tensor* tensor) {
  constexpr unsigned char kHighest = 0x7F;
  const int64_t row = byte == 0 ? 0 : byte == kHighest ? tensor->height() - 1 : -1;
  if (tensor->rows().empty()) return;
  Tensor filled = CopyToCpu(*tensor);
  std::ranges::fill(filled.rows(), row < filled.height() ? row : -1);
  CopyTensor(filled, tensor);
}

// What inputs hold after their rows in use: NaN for floats.
constexpr unsigned char kUnusedInput = 0xFF;

// Returns whether all that the tensor leaves unused of its block holds `byte`.
bool RestHolds(const GuardedBlock& block, const Tensor& tensor, unsigned char byte) {
  const auto* data = static_cast<const unsigned char*>(block.data());
  return std::all_of(data + tensor.byte_count(), data + block.bytes(),
                     [byte](unsigned char found) { return found == byte; });
}

// Returns a tensor in the block; without memory if it has no elements, as in the executor.
Tensor TensorIn(const GuardedBlock& block, const TensorMeta& meta) {
  if (block.bytes() == 0)
    return Tensor(meta.shape, meta.dtype, block.buffer()->place(), meta.layout);
  return Tensor(meta.shape, meta.dtype, block.buffer(), block.offset_bytes(), meta.layout);
}

}  // namespace

std::vector<TensorMeta> InputMetas(const OpDef& def, const Op& op, const NamedTensors& inputs,
                                   const std::map<std::string, Layout>& layouts) {
  std::vector<TensorMeta> metas;
  std::vector<bool> gives_attribute;
  for (const SlotDef& slot : def.inputs) {
    gives_attribute.insert(gives_attribute.end(), op.Input(slot.name).size(),
                           !slot.attribute.empty());
  }
  for (const std::string& name : InputOrder(def, op)) {
    if (name == kEmptyVarName) {
      metas.emplace_back();
      continue;
    }
    const auto it = inputs.find(name);
    SKIFF_ENFORCE(it != inputs.end(), kNotFound, op.type, ": there is no value for input \"", name,
                  "\"");
    const Tensor& tensor = it->second;
    metas.push_back(
        {.shape = tensor.shape(),
         .dtype = tensor.dtype(),
         .lod_level = static_cast<int32_t>(tensor.lod().size()),
         .layout = tensor.is_selected_rows() ? tensor.layout() : LayoutOf(layouts, name),
         .lod = tensor.lod().empty()
                    ? nullptr
                    : std::make_shared<const LoDGroup>(LoDGroup{.offsets = tensor.lod()})});
    // As if a plan had found them.
    if (gives_attribute[metas.size() - 1]) {
      metas.back().contents = std::make_shared<const Tensor>(tensor);
    }
  }
  return metas;
}

std::vector<TensorMeta> InferOutputMetas(const OpDef& def, const Op& op,
                                         const std::vector<TensorMeta>& inputs) {
  const std::vector<std::string> names = OutputOrder(def, op);
  std::vector<TensorMeta> blank(names.size());
  for (TensorMeta& meta : blank) meta.shape = {kNotInferred};
  OpContext context(op, def, inputs, std::move(blank));
  InferOutputs(&context);
  for (size_t i = 0; i < names.size(); ++i) {
    const Shape& shape = context.outputs()[i].shape;
    SKIFF_ENFORCE(names[i] == kEmptyVarName || !(shape == Shape{kNotInferred}), kFailedPrecondition,
                  op.type, ": the shape rule does not set output \"", names[i], "\"");
  }
  // As in the root block of a program.
  if (def.sets_rows && def.sets_rows(op)) {
    for (TensorMeta& meta : context.mutable_outputs()) {
      if (meta.shape.rank() > 0) meta.shape[0] = -1;
      meta.lod = nullptr;
    }
  }
  return {context.outputs().begin(), context.outputs().end()};
}

OpContext ContextOf(const OpDef& def, const Op& op, const NamedTensors& inputs,
                    const std::map<std::string, Layout>& layouts, Place place) {
  std::vector<TensorMeta> in = InputMetas(def, op, inputs, layouts);
  // Shape rules see plain layouts only; kernels are selected by the actual ones.
  std::vector<TensorMeta> out = InferOutputMetas(def, op, InputMetas(def, op, inputs));
  SetOutputLayouts(OutputOrder(def, op), layouts, &out);
  return OpContext(op, def, std::move(in), std::move(out), place);
}

PreparedOp::PreparedOp(const OpRegistry& registry, const Op& op, const NamedTensors& inputs,
                       const OpSettings& settings)
    : def_(registry.Get(op.type)), op_(op), device_{.place = settings.place} {
  CheckOp(def_, op);
  const DeviceUse use = UsePlace(settings.place);
  const OpContext context = ContextOf(def_, op, inputs, settings.layouts, settings.place);
  const KernelDef& kernel = registry.SelectKernel(context, settings.candidate);
  candidate_ = kernel.name;
  PrepareContext prepare(op, def_, {context.inputs().begin(), context.inputs().end()},
                         {context.outputs().begin(), context.outputs().end()}, settings.place);
  prepare.set_rows_vary(settings.rows_vary);
  prepare.set_math(settings.math);
  kernel_ = kernel.prepare(prepare);
  SKIFF_ENFORCE(kernel_ != nullptr, kFailedPrecondition, op.type, ": the factory of candidate \"",
                candidate_, "\" returned no kernel");

  AddInputs({context.inputs().begin(), context.inputs().end()});
  AddOutputs(OutputOrder(def_, op), {context.outputs().begin(), context.outputs().end()},
             settings.in_place);
  for (const int64_t bytes : prepare.workspace_bytes()) {
    workspaces_.push_back(NewBlock(bytes));
    context_.workspaces.push_back(workspaces_.back()->data());
  }
  derived_forms_ = prepare.derived_forms();
  for (const DerivedForm& form : derived_forms_) {
    derived_.push_back(NewBlock(form.bytes));
    context_.derived_forms.push_back(derived_.back()->data());
  }
  if (!device_.place.is_cpu()) {
    stream_ = DeviceOf(device_.place).MakeStream();
    device_.stream = stream_.get();
    // Only where a plan gives one, so that a kernel that needs it otherwise is found.
    const bool may_refuse = std::ranges::any_of(def_.inputs, [&](const SlotDef& slot) {
      return MayNoteFault(slot) && !op.Input(slot.name).empty();
    });
    if (may_refuse) {
      fault_ = NewBlock(sizeof(uint64_t));
      context_.fault = static_cast<uint64_t*>(fault_->data());
    }
  }
  context_.device_context = &device_;
  context_.seed = &seed_;
  context_.step = &step_;
  context_.op_id = static_cast<uint64_t>(std::max<int64_t>(op.id, 0));
  kernel_->Bind(context_);
  Load(inputs, 0);
}

GuardedBlock* PreparedOp::NewBlock(int64_t bytes) {
  return &blocks_.emplace_back(bytes, device_.place);
}

void PreparedOp::AddInputs(const std::vector<TensorMeta>& metas) {
  const std::vector<std::string> names = InputOrder(def_, op_);
  std::vector<Place> places;
  for (const SlotDef& slot : def_.inputs) {
    places.insert(places.end(), op_.Input(slot.name).size(),
                  PlaceOfSlot(def_, op_, slot.name, device_.place));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == kEmptyVarName) {
      context_.inputs.push_back(nullptr);
      continue;
    }
    // A variable that is an argument of several slots is one tensor.
    if (Argument* known = FindInput(names[i])) {
      context_.inputs.push_back(&known->tensor);
      continue;
    }
    const TensorMeta& meta = metas[i];
    const int64_t bytes = StorageBytes(meta.shape, meta.dtype, meta.layout);
    Argument& input = inputs_.emplace_back();
    input.name = names[i];
    input.block = &blocks_.emplace_back(bytes, places[i]);
    input.tensor = TensorIn(*input.block, meta);
    context_.inputs.push_back(&input.tensor);
  }
}

void PreparedOp::AddOutputs(const std::vector<std::string>& names,
                            const std::vector<TensorMeta>& metas, const VariablePairs& in_place) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == kEmptyVarName) {
      context_.outputs.push_back(nullptr);
      continue;
    }
    const TensorMeta& meta = metas[i];
    Argument& output = outputs_.emplace_back();
    output.name = names[i];
    context_.outputs.push_back(&output.tensor);
    output.dynamic = def_.data_dependent_shape && !meta.shape.is_known();
    if (output.dynamic) continue;
    const int64_t bytes = StorageBytes(meta.shape, meta.dtype, meta.layout);
    const auto pair = std::find_if(in_place.begin(), in_place.end(),
                                   [&](const auto& p) { return p.second == names[i]; });
    if (pair == in_place.end()) {
      output.block = NewBlock(bytes);
    } else {
      Argument* input = FindInput(pair->first);
      SKIFF_ENFORCE(input != nullptr && input->block->bytes() == bytes, kInvalidArgument,
                    "outputs \"", names[i], "\" and input \"", pair->first,
                    "\" can't share storage");
      input->shared = true;
      output.block = input->block;
    }
    output.tensor = TensorIn(*output.block, meta);
    if (meta.lod != nullptr) output.tensor.set_lod(meta.lod->offsets);
  }
}

PreparedOp::Argument* PreparedOp::FindInput(const std::string& name) {
  const auto it = std::find_if(inputs_.begin(), inputs_.end(),
                               [&](const Argument& input) { return input.name == name; });
  return it == inputs_.end() ? nullptr : &*it;
}

void PreparedOp::LoadFewerRows(const NamedTensors& inputs, unsigned char poison) {
  const std::vector<TensorMeta> in = InputMetas(def_, op_, inputs);
  for (const TensorMeta& meta : in) {
    SKIFF_ENFORCE(!meta.layout.is_blocked(), kInvalidArgument, "fewer rows in a blocked layout");
  }
  const std::vector<std::string> names = OutputOrder(def_, op_);
  const std::vector<TensorMeta> out = InferOutputMetas(def_, op_, in);
  for (Argument& input : inputs_) {
    const Tensor& value = inputs.at(input.name);
    input.block->Fill(kUnusedInput);
    input.tensor =
        TensorIn(*input.block,
                 {.shape = value.shape(), .dtype = value.dtype(), .layout = input.tensor.layout()});
  }
  for (Argument& output : outputs_) {
    if (output.dynamic) continue;
    const auto at = std::ranges::find(names, output.name) - names.begin();
    const TensorMeta& meta = out[static_cast<size_t>(at)];
    output.tensor = TensorIn(*output.block, meta);
    if (meta.lod != nullptr) output.tensor.set_lod(meta.lod->offsets);
  }
  Load(inputs, poison);
}

void PreparedOp::Load(const NamedTensors& inputs, unsigned char poison) {
  const DeviceUse use = UsePlace(device_.place);
  poison_ = poison;
  if (fault_ != nullptr) fault_->Fill(0xFF);
  for (Argument& output : outputs_) {
    if (output.dynamic) {
      output.tensor = Tensor();
    } else {
      output.block->Fill(poison);
    }
  }
  for (GuardedBlock* workspace : workspaces_) workspace->Fill(poison);
  for (GuardedBlock* derived : derived_) derived->Fill(poison);
  // After the outputs, which may share their storage.
  for (Argument& input : inputs_) {
    const Tensor& value = inputs.at(input.name);
    if (input.taken_away) input.tensor = *std::exchange(input.taken_away, std::nullopt);
    Tensor in_layout(value.shape(), value.dtype(), Place::Cpu(), input.tensor.layout());
    CopyIntoLayout(value, &in_layout);
    CopyTensor(in_layout, &input.tensor);
    input.tensor.ShareLoD(value.shared_lod());
    input.before = CopyToCpu(input.tensor);
  }
  for (size_t i = 0; i < derived_forms_.size(); ++i) {
    const DerivedForm& form = derived_forms_[i];
    form.refresh(context_, derived_[i]->data());
  }
}

void PreparedOp::PoisonInput(const std::string& name, unsigned char poison) {
  Argument* input = FindInput(name);
  SKIFF_ENFORCE(input != nullptr, kNotFound, "there is no input \"", name, "\"");
  if (input->shared) return;
  input->block->Fill(poison);
  if (input->tensor.is_selected_rows()) FillRowNumbers(poison, &input->tensor);
  input->before = CopyToCpu(input->tensor);
}

void PreparedOp::TakeInputAway(const std::string& name) {
  Argument* input = FindInput(name);
  SKIFF_ENFORCE(input != nullptr, kNotFound, "there is no input \"", name, "\"");
  if (input->shared) return;
  input->taken_away = std::exchange(input->tensor, Tensor());
  input->tensor.ShareLoD(input->taken_away->shared_lod());
}

void PreparedOp::Run() {
  const DeviceUse use = UsePlace(device_.place);
  kernel_->Run(context_);
}

void PreparedOp::Wait() const {
  if (stream_ == nullptr) return;
  stream_->Wait();
  if (fault_ == nullptr) return;
  uint64_t word = kNoDataFault;
  CopyBytes(&word, Place::Cpu(), context_.fault, device_.place, sizeof(word));
  if (word != kNoDataFault) kernel_->ThrowFault(DataFaultOf(word));
}

NamedTensors PreparedOp::Outputs() const {
  NamedTensors outputs;
  for (const Argument& output : outputs_) {
    outputs[output.name] = ToPlain(CopyToCpu(output.tensor));
  }
  return outputs;
}

std::vector<std::string> PreparedOp::Faults() const {
  std::vector<std::string> faults;
  const auto check_guards = [&](const GuardedBlock& block, const std::string& what) {
    if (!block.guards_are_intact()) {
      faults.push_back(StrCat("wrote out of the bounds of ", what));
    }
  };
  for (const Argument& input : inputs_) {
    if (input.shared || input.taken_away) continue;
    check_guards(*input.block, StrCat("input ", input.name));
    if (!SameBits(CopyToCpu(input.tensor), input.before)) {
      faults.push_back(StrCat("wrote into input ", input.name));
    }
    if (device_.place.is_cpu() && !RestHolds(*input.block, input.tensor, kUnusedInput)) {
      faults.push_back(StrCat("wrote after the rows of input ", input.name));
    }
  }
  for (const Argument& output : outputs_) {
    if (output.dynamic) continue;
    check_guards(*output.block, StrCat("output ", output.name));
    if (device_.place.is_cpu() && !RestHolds(*output.block, output.tensor, poison_)) {
      faults.push_back(StrCat("wrote after the rows of output ", output.name));
    }
    if (!PaddingIsZero(CopyToCpu(output.tensor))) {
      faults.push_back(StrCat("left the padding of output ", output.name, " (",
                              output.tensor.shape(), ", ", output.tensor.layout(),
                              ") other than zero"));
    }
  }
  for (size_t i = 0; i < workspaces_.size(); ++i) {
    check_guards(*workspaces_[i], StrCat("workspace ", i));
  }
  if (fault_ != nullptr) check_guards(*fault_, "the fault");
  for (size_t i = 0; i < derived_.size(); ++i) {
    check_guards(*derived_[i], StrCat("derived form ", i));
  }
  return faults;
}

int64_t PreparedOp::argument_bytes() const {
  int64_t bytes = 0;
  for (const Argument& input : inputs_) bytes += input.tensor.byte_count();
  for (const Argument& output : outputs_) bytes += output.tensor.byte_count();
  return bytes;
}

int64_t PreparedOp::workspace_bytes() const {
  int64_t bytes = 0;
  for (const GuardedBlock* workspace : workspaces_) bytes += workspace->bytes();
  return bytes;
}

}  // namespace skiff::harness
