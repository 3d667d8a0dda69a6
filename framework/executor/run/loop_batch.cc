#include "framework/executor/run/loop_batch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/plan/row_batch.h"
#include "memory/allocator.h"

namespace skiff {
BatchLayout::BatchLayout(const Loop& loop, size_t index) {
  const Instruction& instruction = loop.body.instructions[index];
  const RowRule& rule = *instruction.def->rows;
  const auto add = [&](ValueId value) {
    if (value && std::ranges::count(values, value) == 0) values.push_back(value);
  };
  for (const StaticText slot : rule.inputs) add(instruction.InputIn(slot));
  for (const StaticText slot : rule.outputs) {
    if (instruction.def->FindOutput(slot) != nullptr) add(instruction.OutputIn(slot));
  }
  limit = MostBatchRows(loop.body, instruction);
  const int64_t rows = loop.body[values.front()].meta.shape[0];
  capacity = std::max<int64_t>(1, std::max(rows, limit));
  if (loop.iterations > 0)
    capacity = std::min(capacity, std::max<int64_t>(1, MultiplyCounts(rows, loop.iterations)));
}

TensorMeta BatchLayout::MetaOf(const Plan& body, size_t i) const {
  TensorMeta meta = body[values[i]].meta;
  meta.shape[0] = capacity;
  return meta;
}

int64_t BatchLayout::Bytes(const Plan& body) const {
  int64_t bytes = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const TensorMeta meta = MetaOf(body, i);
    bytes += RoundUp(StorageBytes(meta.shape, meta.dtype, meta.layout), kBufferAlignment);
  }
  return bytes;
}

std::optional<PreparedKernel> PrepareBatch(const KernelSelection& selection, size_t index,
                                           Loop* loop) {
  const BatchLayout layout(*loop, index);
  Plan wide = loop->body;
  for (size_t i = 0; i < layout.values.size(); ++i) {
    wide[layout.values[i]].meta = layout.MetaOf(wide, i);
  }
  KernelSelection of_batch = selection;
  of_batch.rows_vary = true;
  Instruction instruction = loop->body.instructions[index];
  PreparedKernel kernel = PrepareKernel(of_batch, wide, &instruction);
  if (!kernel.kernel->AcceptsFewerRows()) return std::nullopt;
  loop->body.instructions[index].workspace_bytes = instruction.workspace_bytes;
  return kernel;
}

LoopBatch::Values::Values(const Plan& body, const BatchLayout& layout, ValueTensors* outer)
    : ValueTensors(body.values.size()), outer_(*outer) {
  for (const ValueId id : body.ids()) tensor_of_[id] = outer->Of(id);
  for (size_t i = 0; i < layout.values.size(); ++i) {
    const ValueId id = layout.values[i];
    const TensorMeta meta = layout.MetaOf(body, i);
    const int64_t bytes = StorageBytes(meta.shape, meta.dtype, meta.layout);
    tensors_[id] =
        Tensor(meta.shape, meta.dtype, std::make_shared<Buffer>(nullptr, bytes, body.place), 0);
    tensor_of_[id] = &tensors_[id];
  }
}

LoopBatch::LoopBatch(const Loop& loop, size_t index, ValueTensors* tensors)
    : body_(loop.body),
      layout_(loop, index),
      tensors_(*tensors),
      values_(std::make_unique<Values>(body_, layout_, tensors)) {
  for (size_t i = 0; i < layout_.values.size(); ++i) {
    row_bytes_.push_back(values_->Of(layout_.values[i])->byte_count() / layout_.capacity);
  }
}

void LoopBatch::PlaceRows(char* memory) {
  memory_ = memory;
  for (size_t i = 0; i < layout_.values.size(); ++i) {
    values_->Of(layout_.values[i])->Rebind(memory);
    memory += RoundUp(row_bytes_[i] * layout_.capacity, kBufferAlignment);
  }
}

void LoopBatch::Poison() {
  constexpr int kNaN = 0xff;
  std::memset(memory_, kNaN, static_cast<size_t>(layout_.Bytes(body_)));
}

void LoopBatch::Copy(size_t i, const void* data, int64_t rows) {
  const int64_t bytes = rows * row_bytes_[i];
  if (bytes == 0) return;
  auto* to = static_cast<char*>(values_->Of(layout_.values[i])->raw_data());
  std::memcpy(to + filled_ * row_bytes_[i], data, static_cast<size_t>(bytes));
}

bool LoopBatch::Append(const void* data, int64_t rows) {
  if (!Fits(rows)) return false;
  Copy(0, data, rows);
  filled_ += rows;
  return true;
}

bool LoopBatch::Collect() {
  const int64_t rows = tensors_.Of(layout_.values.front())->shape()[0];
  if (!Fits(rows)) return false;
  for (size_t i = 0; i < layout_.values.size(); ++i) {
    const Tensor& tensor = *tensors_.Of(layout_.values[i]);
    SKIFF_ENFORCE(tensor.shape()[0] == rows, kInvalidArgument, "\"", body_[layout_.values[i]].name,
                  "\" has ", tensor.shape()[0], " rows, \"", body_[layout_.values.front()].name,
                  "\" has ", rows, ": expected as many");
    Copy(i, tensor.raw_data(), rows);
  }
  filled_ += rows;
  return true;
}

void LoopBatch::Run(BoundKernel* kernel) {
  for (const ValueId value : layout_.values) values_->Of(value)->SetRows(filled_);
  kernel->Run();
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
        static_cast<const char*>(values_->Of(output)->raw_data()) + dealt_ * row_bytes_[last],
        static_cast<size_t>(to.byte_count()));
  }
  dealt_ += rows;
}

}  // namespace skiff
