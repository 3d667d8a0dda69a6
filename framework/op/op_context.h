// One op as a shape rule, a kernel choice and a kernel factory see it: its attributes with defaults
// filled in, and the shape, dtype and layout of each argument. Not thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/place.h"
#include "framework/op/lod_group.h"
#include "framework/op/op_def.h"
#include "framework/tensor/layout.h"
#include "framework/tensor/shape.h"

namespace skiff {

struct TensorMeta {
  Shape shape;  // -1 is a legal dim outside of a run
  DType dtype = DType::kFloat32;
  int32_t lod_level = 0;
  Layout layout;
  bool persistable = false;
  // Of a ragged value in a plan; nullptr while a program is built. lod_level is the number of its
  // levels.
  std::shared_ptr<const LoDGroup> lod = {};
  // Of a value whose shape depends on more of LoDs than their counts: the counts of this LoD, which
  // no tensor has (OpContext::DependOnLoD).
  std::shared_ptr<const LoDGroup> shape_lod = {};
  // Of an array (TensorArray). Shape, dtype and LoD level are then those of an element; in a plan,
  // dim 0 is that of the largest element, and the shape has no dims as long as nothing is written.
  bool is_array = false;
  // Of a value in a plan, whose elements are known and are needed for an attribute
  // (SlotDef::attribute): a tensor on the CPU. nullptr: unknown, as while a program is built.
  std::shared_ptr<const Tensor> contents = {};

  // For selected rows, `shape` is that of the values: dim 0 is the number of rows held.
  bool is_selected_rows() const { return layout.selected_rows; }
  int64_t height() const { return layout.height; }
  // For selected rows, the shape of the dense tensor they represent.
  Shape dense_shape() const { return DenseShape(shape, layout); }
};

class OpContext {
 public:
  // `op` and `def` must outlive the context. `inputs` and `outputs` have one meta per argument in
  // the order of InputOrder and OutputOrder.
  OpContext(const Op& op, const OpDef& def, std::vector<TensorMeta> inputs,
            std::vector<TensorMeta> outputs, Place place = Place::Cpu());

  const Op& op() const { return op_; }
  const OpDef& def() const { return def_; }
  Place place() const { return place_; }

  // Returns the attribute that a connected input gives (SlotDef::attribute) if it is known, else
  // the op's or the definition's default. Throws Error if there is neither or it has another type.
  template <typename T>
  const T& Attr(std::string_view name) const;
  bool HasAttr(std::string_view name) const;
  // Return an integer attribute that files store as int or long, and a list of either.
  int64_t IntAttr(std::string_view name) const;
  std::vector<int64_t> IntsAttr(std::string_view name) const;
  // Returns false if an input is connected that gives the attribute (SlotDef::attribute), and its
  // elements aren't known, as while a program is built. Then the op's own attribute doesn't count.
  bool Knows(std::string_view name) const;
  // Returns a list of integers that are dims or the like; an unknown number is -1. (PaddlePaddle
  // writes the numbers that it knows into the attribute, and into the output's declared dims. But a
  // run takes the input's numbers, and in an edited program the attribute may differ.) Throws Error
  // (kInvalidArgument) if not even their number is known.
  std::vector<int64_t> DimsAttr(std::string_view name) const;
  // Returns how many numbers a list of integers has, -1 if nobody knows.
  int64_t CountOfInts(std::string_view name) const;

  // Return the index of argument `i` of a slot among the op's inputs (outputs), as KernelContext
  // counts them; -1 if the slot is absent or has fewer arguments, or the argument is @EMPTY@.
  int InputIndex(std::string_view slot, size_t i = 0) const;
  int OutputIndex(std::string_view slot, size_t i = 0) const;
  // Return the number of arguments in a slot, 0 if it is absent.
  size_t InputCount(std::string_view slot) const;
  size_t OutputCount(std::string_view slot) const;
  bool HasInput(std::string_view slot) const { return InputIndex(slot) >= 0; }
  bool HasOutput(std::string_view slot) const { return OutputIndex(slot) >= 0; }

  // Throw Error if the argument is absent.
  const TensorMeta& Input(std::string_view slot, size_t i = 0) const;
  const TensorMeta& Output(std::string_view slot, size_t i = 0) const;
  std::span<const TensorMeta> inputs() const { return inputs_; }
  std::span<const TensorMeta> outputs() const { return outputs_; }

  // For shape rules: declares an output as dense. Does nothing if the output is absent, which is
  // legal for outputs that aren't needed.
  void SetOutput(std::string_view slot, const Shape& shape, DType dtype, size_t i = 0);
  // Declares an output as selected rows. `shape` is that of the values.
  void SetSelectedRows(std::string_view slot, const Shape& shape, DType dtype, int64_t height,
                       size_t i = 0);
  // Gives output i of `slot` the shape, dtype and LoD of an input. It is selected rows if the
  // input is.
  void SetOutputLike(std::string_view slot, std::string_view input_slot, size_t i = 0);

  // Returns the LoD of an input, nullptr while a program is built. Throws Error (kInvalidArgument)
  // if it has fewer than `levels`.
  const LoD* InputLoD(std::string_view slot, int32_t levels = 1, size_t i = 0) const;
  // For shape rules: gives an output the LoD of an input. SetOutputLike has done so already.
  void ShareLoD(std::string_view slot, std::string_view input_slot, size_t i = 0);
  // For shape rules: gives an output the LoD of `levels` that `derive` makes of the inputs' LoDs.
  // Returns the new LoD, or nullptr while a program is built. `derive` depends on nothing else, and
  // each run calls it again; it may throw an Error for LoDs that don't fit together.
  const LoD* DeriveLoD(std::string_view slot, const std::vector<std::string_view>& input_slots,
                       int32_t levels, LoDGroup::Derive derive);
  // For shape rules: declares that the shape of an output depends on the counts of the LoD that
  // `derive` makes of the inputs' LoDs. Example: an output whose rows are the length of the longest
  // sequence. Gives the output no LoD. Otherwise like DeriveLoD.
  const LoD* DependOnLoD(std::string_view slot, const std::vector<std::string_view>& input_slots,
                         LoDGroup::Derive derive);

  std::span<TensorMeta> mutable_outputs() { return outputs_; }

 private:
  // Returns the group that `derive` makes of the inputs' groups, nullptr while a program is built.
  std::shared_ptr<const LoDGroup> Derived(const std::vector<std::string_view>& input_slots,
                                          LoDGroup::Derive derive) const;
  int IndexOf(const std::vector<SlotDef>& slots, bool is_input, std::string_view slot,
              size_t i) const;
  const Attribute& GetAttr(std::string_view name) const;
  [[noreturn]] void ThrowAttrType(std::string_view name, AttrType expected) const;
  // An attribute that a connected input gives; without a value as long as that isn't known.
  struct GivenAttr {
    const SlotDef* slot = nullptr;
    std::optional<Attribute> value;
  };
  const GivenAttr* FindGiven(std::string_view name) const;
  std::optional<Attribute> ValueGivenBy(const SlotDef& slot) const;

  const Op& op_;
  const OpDef& def_;
  std::vector<TensorMeta> inputs_;
  std::vector<TensorMeta> outputs_;
  Place place_;
  std::vector<GivenAttr> given_;
};

// Return the op's arguments in the order of the definition's slots, the order that KernelContext's
// indices count. @EMPTY@ keeps its position.
std::vector<std::string> InputOrder(const OpDef& def, const Op& op);
std::vector<std::string> OutputOrder(const OpDef& def, const Op& op);

template <typename T>
const T& OpContext::Attr(std::string_view name) const {
  const T* value = std::get_if<T>(&GetAttr(name));
  if (value == nullptr) ThrowAttrType(name, AttrTypeOf<T>());
  return *value;
}

// Returns the one of `a` and `b` that is known (not negative). Throws Error, starting with `what`,
// if both are known and differ.
int64_t MergeDims(int64_t a, int64_t b, std::string_view what);

}  // namespace skiff
