// An instruction of a loop's body that runs on the rows of several iterations at once (Batching).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "framework/executor/run/bound_kernel.h"
#include "framework/executor/run/plan_kernels.h"
#include "framework/executor/storage/bound_values.h"
#include "framework/plan/loop.h"
#include "framework/plan/plan.h"

namespace skiff {

// Which rows run together, and the memory for them.
struct BatchLayout {
  // `index`: of an instruction of the body with a batching.
  BatchLayout(const Loop& loop, size_t index);

  int64_t limit = 0;            // the most rows of several iterations
  int64_t capacity = 0;         // the most rows at all: an iteration may have more than the limit
  std::vector<ValueId> values;  // of the body: the row inputs, then the row outputs
  // Returns the meta of the rows of values[i].
  TensorMeta MetaOf(const Plan& body, size_t i) const;
  // Returns the bytes of the memory for all of them, each from a multiple of kBufferAlignment.
  int64_t Bytes(const Plan& body) const;
};

// Prepares the kernel of the instruction for as many rows as its batch may have, and sets the
// instruction's workspace_bytes. Returns nothing if the kernel wouldn't take fewer rows.
std::optional<PreparedKernel> PrepareBatch(const KernelSelection& selection, size_t index,
                                           Loop* loop);

class LoopBatch {
 public:
  // `tensors` are the tensors of the body. All arguments must outlive the object.
  LoopBatch(const Loop& loop, size_t index, ValueTensors* tensors);

  // Returns the tensors that the instruction's kernel must see: the rows of many iterations, and
  // otherwise the tensors of the body.
  ValueTensors* values() { return values_.get(); }
  // Must come before the kernel is bound, and again when the memory has moved. `memory` has the
  // layout's bytes.
  void PlaceRows(char* memory);
  // Fills the memory with NaN, so that a row that no iteration has added shows.
  void Poison();

  // Forgets all rows.
  void Clear() { filled_ = dealt_ = 0; }
  int64_t rows() const { return filled_; }
  // Returns how many rows of the output no iteration has taken yet.
  int64_t rows_left() const { return filled_ - dealt_; }

  // Adds rows of the instruction's only row input. Returns false, and adds nothing, if the rows
  // don't fit.
  bool Append(const void* data, int64_t rows);
  // Adds the iteration's rows of all row inputs. Returns false, and adds nothing, if the rows don't
  // fit.
  bool Collect();
  // Runs the kernel, prepared by PrepareBatch, on the rows.
  void Run(BoundKernel* kernel);
  // Gives the output of the iteration the next of the rows that the kernel has made.
  void Deal();

 private:
  class Values final : public ValueTensors {
   public:
    Values(const Plan& body, const BatchLayout& layout, ValueTensors* outer);
    void* InArena(Place place, int64_t offset) const override {
      return outer_.InArena(place, offset);
    }
    void SetPending(ValueId value, PendingWrites* pending) override {
      outer_.SetPending(value, pending);
    }

   private:
    ValueTensors& outer_;
  };

  bool Fits(int64_t rows) const { return filled_ == 0 || filled_ + rows <= layout_.limit; }
  // Appends rows to the rows of layout_.values[i].
  void Copy(size_t i, const void* data, int64_t rows);

  const Plan& body_;
  const BatchLayout layout_;
  ValueTensors& tensors_;
  std::unique_ptr<Values> values_;
  char* memory_ = nullptr;
  std::vector<int64_t> row_bytes_;  // by value of the layout
  int64_t filled_ = 0;              // rows
  int64_t dealt_ = 0;               // of the filled ones
};

}  // namespace skiff
