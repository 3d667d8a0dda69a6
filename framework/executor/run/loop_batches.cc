#include "framework/executor/run/loop_batches.h"

#include <algorithm>

#include "framework/tensor/tensor_array.h"

namespace skiff {

LoopBatches::LoopBatches(const Loop& loop, const BodyOffsets& offsets, const LoopStacks& stacks,
                         LoopSums* sums, BodyTensors* tensors)
    : loop_(loop),
      body_(loop.body),
      offsets_(offsets),
      stacks_(stacks),
      sums_(*sums),
      tensors_(*tensors),
      batches_(body_.instructions.size()) {
  for (const auto& [i, place] : offsets_.batches) {
    const Instruction& instruction = body_.instructions[i];
    batches_[i] = std::make_unique<Batch>(LoopBatch(loop, i, tensors));
    instruction.batching == Batching::kAfter ? FindSums(instruction, batches_[i].get())
                                             : FindSource(instruction, batches_[i].get());
  }
}

void LoopBatches::FindSums(const Instruction& instruction, Batch* batch) {
  for (const LoopFetch& fetch : loop_.fetches) {
    if (std::ranges::count(instruction.outputs, fetch.value) == 0) continue;
    batch->sums.push_back(&fetch);
    summed_.insert(&fetch);
  }
}

void LoopBatches::FindSource(const Instruction& instruction, Batch* batch) const {
  const ValueId rows = instruction.InputIn(instruction.def->rows->inputs.front());
  const auto feed = std::ranges::find(loop_.feeds, rows, &LoopFeed::value);
  if (feed != loop_.feeds.end()) {
    batch->part = &*feed;
    return;
  }
  const Instruction& read = *std::ranges::find_if(
      body_.instructions,
      [&](const Instruction& other) { return std::ranges::count(other.outputs, rows) > 0; });
  batch->array = read.InputIn(read.def->element->array);
  batch->index = read.InputIn(read.def->element->index);
}

ValueTensors* LoopBatches::ValuesOf(size_t instruction) const {
  return Has(instruction) ? batches_[instruction]->rows.values() : &tensors_;
}

void LoopBatches::Place() {
  for (const auto& [i, offset] : offsets_.batches) {
    batches_[i]->rows.PlaceRows(static_cast<char*>(tensors_.InArena(body_.place, offset)));
  }
}

void LoopBatches::Start(bool poisons) {
  for (const auto& [i, offset] : offsets_.batches) {
    batches_[i]->rows.Clear();
    batches_[i]->added = 0;
    if (poisons) batches_[i]->rows.Poison();
  }
}

void LoopBatches::Run(const KernelContext& context, size_t instruction, int64_t count, int64_t done,
                      BoundKernel* kernel) {
  Batch& batch = *batches_[instruction];
  LoopBatch& rows = batch.rows;
  if (!batch.sums.empty()) {
    if (rows.Collect()) return;
    AddSums(context, &batch, kernel);
    rows.Collect();
    return;
  }
  if (rows.rows_left() == 0) {
    rows.Clear();
    Fill(context, count, done, &batch);
    rows.Run(kernel);
  }
  rows.Deal();
}

// Gives a batch the rows of this iteration and of as many later ones as fit.
void LoopBatches::Fill(const KernelContext& context, int64_t count, int64_t done,
                       Batch* batch) const {
  if (batch->part != nullptr) {
    const int64_t rows = tensors_.Of(batch->part->value)->shape()[0];
    for (int64_t i = done; i < count; ++i) {
      const int64_t t = loop_.descending ? count - 1 - i : i;
      if (!batch->rows.Append(stacks_.PartOf(context, *batch->part, t), rows)) return;
    }
    return;
  }
  const TensorArray& array = *tensors_.Of(batch->array)->array();
  for (int64_t i = *tensors_.Of(batch->index)->data<int64_t>();; ++i) {
    const Tensor* element = array.Find(i);
    const bool is_there = element != nullptr;
    if (!is_there || !batch->rows.Append(element->raw_data(), element->shape()[0])) return;
  }
}

// Adds what the rows of a batch sum up to to the results of the loop.
void LoopBatches::AddSums(const KernelContext& context, Batch* batch, BoundKernel* kernel) {
  batch->rows.Run(kernel);
  for (const LoopFetch* fetch : batch->sums) {
    sums_.Add(*fetch, batch->added, tensors_.Of(fetch->value), &context.output(fetch->output));
  }
  ++batch->added;
  batch->rows.Clear();
}

void LoopBatches::Finish(const KernelContext& context, int64_t count, PlanRunner* runner) {
  for (const auto& [i, offset] : offsets_.batches) {
    Batch& batch = *batches_[i];
    // If no iteration had any rows, the sum is of none.
    const bool is_due = batch.rows.rows() > 0 || (batch.added == 0 && count > 0);
    if (batch.sums.empty() || !is_due) continue;
    runner->Time(i, [&] { AddSums(context, &batch, &runner->kernel(i)); });
  }
}

}  // namespace skiff
