// An instruction of a loop's body that runs on the rows of several iterations at once (Batching).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "framework/executor/bound_kernel.h"
#include "framework/executor/bound_values.h"
#include "framework/executor/plan_kernels.h"
#include "framework/plan/loop.h"
#include "framework/plan/plan.h"

namespace skiff {

// How many rows run together, and whose they are.
struct BatchLayout {
  // `index`: of an instruction of the body with a batching.
  BatchLayout(const Loop& loop, size_t index);

  int64_t capacity = 0;         // rows, at least those of one iteration
  std::vector<ValueId> values;  // of the body: the row inputs, then the row outputs
  // Returns the bytes for the rows of values[i].
  int64_t BytesOf(const Plan& body, size_t i) const;
};

// Prepares the kernel of the instruction for as many rows as its batch may have, and sets its
// workspace_bytes. Returns nothing if the kernel wouldn't take fewer.
std::optional<PreparedKernel> PrepareBatch(const KernelSelection& selection, size_t index,
                                           Loop* loop);

class LoopBatch {
 public:
  // `kernel` is one of PrepareBatch. `tensors` are those of the body. All that it is given, but for
  // the kernel, must outlive it.
  LoopBatch(const Loop& loop, size_t index, PreparedKernel kernel, uint64_t op_id,
            ValueTensors* tensors, Scope* scope, const RunState* state);

  // Must follow when memory has moved. `memory` has room for the rows of each value of the layout,
  // one after the other (BatchLayout::BytesOf, each rounded up to kBufferAlignment).
  void Bind(char* memory);

  const KernelDef* def() const { return kernel_.def(); }
  // The rows that are there, and how many of them are left to deal.
  int64_t rows() const { return filled_; }
  int64_t rows_left() const { return filled_ - dealt_; }
  void Clear() { filled_ = dealt_ = 0; }
  // Adds rows of the instruction's only row input. Returns false if there is no room for them.
  bool Append(const void* data, int64_t rows) { return AppendTo(0, data, rows, &filled_); }
  // Adds those that the iteration has of all row inputs. Returns false if there is no room for
  // them.
  bool Collect();
  // Runs the kernel on the rows.
  void Run();
  // Gives the output of the iteration the next of the rows that the kernel has made.
  void Deal();

 private:
  // The body's tensors, but for those with the rows of many iterations.
  class Values final : public ValueTensors {
   public:
    Values(const Plan& body, const BatchLayout& layout, ValueTensors* outer);
    void* InArena(int64_t offset) const override { return outer_.InArena(offset); }
    void SetPending(ValueId value, PendingWrites* pending) override {
      outer_.SetPending(value, pending);
    }

   private:
    ValueTensors& outer_;
  };

  // Adds rows of layout_.values[i] and moves *filled.
  bool AppendTo(size_t i, const void* data, int64_t rows, int64_t* filled);

  const Plan& body_;
  const BatchLayout layout_;
  ValueTensors& tensors_;
  Values values_;
  BoundKernel kernel_;
  std::vector<int64_t> row_bytes_;  // by value of the layout
  int64_t filled_ = 0;              // rows
  int64_t dealt_ = 0;               // of the filled ones
};

}  // namespace skiff
