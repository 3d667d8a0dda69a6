// The arrays of tensors that a block reads and writes, with the metas of the elements.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "framework/executor/lowering/segment.h"
#include "framework/op/op_context.h"

namespace skiff {

class BlockArrays {
 public:
  // `metas` are by the names that arrays have outside the block. Writes change the metas, which
  // must outlive the object.
  explicit BlockArrays(ArrayMetas* metas) : metas_(*metas) {}

  // Makes `name` in the block mean the array `outer` outside.
  void Tie(const std::string& name, const std::string& outer) { tied_[name] = outer; }
  // Returns whether an array of the block is tied to `outer`.
  bool IsTiedTo(const std::string& outer) const;
  // Returns the array's name outside: its own name unless the array is tied.
  const std::string& OuterName(const std::string& name) const;

  // Returns the meta of the array with this name outside, nullptr if no op has written the array.
  const ArrayMeta* Find(const std::string& outer) const;
  // Notes the array's current meta, unless an earlier read has done so.
  void NoteRead(const std::string& name);
  // Returns whether the metas of all arrays are the same as at the first reads.
  bool AreAsRead() const;

  // Notes that an op of this type writes an element like `meta` to the array. Returns the meta of
  // all elements, whose rows and sequences are the most that an element has, and whose other dims
  // are -1 where elements differ. Throws an Error (kInvalidArgument) if the elements have another
  // dtype, rank or number of LoD levels.
  const TensorMeta& AddElement(std::string_view op_type, const std::string& name,
                               const TensorMeta& meta);
  // Notes that the rows of the array's elements vary from run to run. The array has been written.
  void MarkVarying(const std::string& name) { metas_.at(OuterName(name)).rows_vary = true; }

 private:
  ArrayMetas& metas_;
  std::map<std::string, std::string> tied_;
  std::map<std::string, std::optional<ArrayMeta>> reads_;  // nothing: no op has written the array
};

}  // namespace skiff
