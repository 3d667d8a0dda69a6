#include "framework/executor/loop_batch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "memory/allocator.h"

namespace skiff {
namespace {

// Enough for a product with them to run at full speed.
constexpr int64_t kBatchRows = 512;

}  // namespace

BatchLayout::BatchLayout(const Loop& loop, size_t index) {
  const Instruction& instruction = loop.body.instructions[index];
  const RowRule& rule = *instruction.def->rows;
  const auto add = [&](const std::vector<std::string>& slots, const std::vector<SlotDef>& defs,
                       bool are_inputs) {
    for (const std::string& slot : slots) {
      const auto def = std::ranges::find(defs, slot, &SlotDef::name);
      if (def == defs.end()) continue;
      const ValueId value = are_inputs ? instruction.InputIn(slot) : instruction.OutputIn(slot);
      if (value && std::ranges::count(values, value) == 0) values.push_back(value);
    }
  };
  add(rule.inputs, instruction.def->inputs, true);
  add(rule.outputs, instruction.def->outputs, false);
  const int64_t rows = std::max<int64_t>(1, loop.body[values.front()].meta.shape[0]);
  capacity = rows * std::max<int64_t>(1, (kBatchRows + rows - 1) / rows);
  if (loop.iterations >= 0)
    capacity = std::min(capacity, rows * std::max<int64_t>(1, loop.iterations));
}

int64_t BatchLayout::BytesOf(const Plan& body, size_t i) const {
  const TensorMeta& meta = body[values[i]].meta;
  Shape shape = meta.shape;
  shape[0] = capacity;
  return StorageBytes(shape, meta.dtype, meta.layout);
}

std::optional<PreparedKernel> PrepareBatch(const KernelSelection& selection, size_t index,
                                           Loop* loop) {
  const BatchLayout layout(*loop, index);
  Plan wide = loop->body;
  for (const ValueId value : layout.values) wide[value].meta.shape[0] = layout.capacity;
  KernelSelection of_batch = selection;
  of_batch.rows_vary = true;
  Instruction instruction = loop->body.instructions[index];
  PreparedKernel kernel = PrepareKernel(of_batch, wide, &instruction);
  if (!kernel.kernel->TakesFewerRows()) return std::nullopt;
  loop->body.instructions[index].workspace_bytes = instruction.workspace_bytes;
  return kernel;
}

LoopBatch::Values::Values(const Plan& body, const BatchLayout& layout, ValueTensors* outer)
    : ValueTensors(body.values.size()), outer_(*outer) {
  for (const ValueId id : body.ids()) tensor_of_[id] = outer->Of(id);
  for (size_t i = 0; i < layout.values.size(); ++i) {
    const ValueId id = layout.values[i];
    const TensorMeta& meta = body[id].meta;
    Shape shape = meta.shape;
    shape[0] = layout.capacity;
    tensors_[id] =
        Tensor(shape, meta.dtype,
               std::make_shared<Buffer>(nullptr, layout.BytesOf(body, i), body.place), 0);
    tensor_of_[id] = &tensors_[id];
  }
}

LoopBatch::LoopBatch(const Loop& loop, size_t index, PreparedKernel kernel, uint64_t op_id,
                     ValueTensors* tensors, Scope* scope, const RunState* state)
    : body_(loop.body),
      layout_(loop, index),
      tensors_(*tensors),
      values_(body_, layout_, tensors),
      kernel_(std::move(kernel), body_.instructions[index].workspace_bytes, body_,
              body_.instructions[index], op_id, &values_, scope, state) {
  for (size_t i = 0; i < layout_.values.size(); ++i) {
    row_bytes_.push_back(layout_.BytesOf(body_, i) / layout_.capacity);
  }
}

void LoopBatch::Bind(char* memory) {
  for (size_t i = 0; i < layout_.values.size(); ++i) {
    values_.Of(layout_.values[i])->Rebind(memory);
    memory += RoundUp(layout_.BytesOf(body_, i), kBufferAlignment);
  }
  kernel_.FollowArena();
  kernel_.Bind();
}

bool LoopBatch::AppendTo(size_t i, const void* data, int64_t rows, int64_t* filled) {
  if (*filled + rows > layout_.capacity) return false;
  const int64_t row_bytes = row_bytes_[i];
  if (rows * row_bytes > 0) {
    std::memcpy(static_cast<char*>(values_.Of(layout_.values[i])->raw_data()) + *filled * row_bytes,
                data, static_cast<size_t>(rows * row_bytes));
  }
  *filled += rows;
  return true;
}

bool LoopBatch::Collect() {
  const int64_t rows = tensors_.Of(layout_.values.front())->shape()[0];
  int64_t filled = filled_;
  for (size_t i = 0; i < layout_.values.size(); ++i) {
    const Tensor& tensor = *tensors_.Of(layout_.values[i]);
    SKIFF_ENFORCE(tensor.shape()[0] == rows, kInvalidArgument, "\"", body_[layout_.values[i]].name,
                  "\" has ", tensor.shape()[0], " rows, \"", body_[layout_.values.front()].name,
                  "\" has ", rows, ": expected as many");
    filled = filled_;
    if (!AppendTo(i, tensor.raw_data(), rows, &filled)) return false;
  }
  filled_ = filled;
  return true;
}

void LoopBatch::Run() {
  for (const ValueId value : layout_.values) values_.Of(value)->SetRows(filled_);
  kernel_.Run();
}

void LoopBatch::Deal() {
  const size_t last = layout_.values.size() - 1;
  const ValueId output = layout_.values[last];
  Tensor& to = *tensors_.Of(output);
  const int64_t rows = to.shape()[0];
  SKIFF_ENFORCE(rows <= rows_left(), kInvalidArgument, "\"", body_[output].name, "\" has ", rows,
                " rows, but only ", rows_left(), " have been computed before the loop");
  if (to.byte_count() > 0) {
    std::memcpy(
        to.raw_data(),
        static_cast<const char*>(values_.Of(output)->raw_data()) + dealt_ * row_bytes_[last],
        static_cast<size_t>(to.byte_count()));
  }
  dealt_ += rows;
}

}  // namespace skiff
