// What a shape rule, a kernel choice and a kernel factory see of one op: attributes with defaults
// filled in, and the shape, dtype and layout of each argument.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/place.h"
#include "framework/op/op_def.h"
#include "framework/tensor/layout.h"
#include "framework/tensor/shape.h"

namespace skiff {

struct TensorMeta {
  Shape shape;  // dims of -1 are legal outside of a run
  DType dtype = DType::kFloat32;
  int32_t lod_level = 0;
  Layout layout;
  bool persistable = false;

  // Of selected rows: `shape` is that of the values, dim 0 being the number of slots.
  bool is_selected_rows() const { return layout.selected_rows; }
  int64_t height() const { return layout.height; }
  // Of selected rows that of the dense tensor they stand for.
  Shape dense_shape() const { return DenseShape(shape, layout); }
};

class OpContext {
 public:
  // `op` and `def` outlive the context. One meta per argument of each slot, slots in the order of
  // `def`, absent ones left out; see InputOrder.
  OpContext(const Op& op, const OpDef& def, std::vector<TensorMeta> inputs,
            std::vector<TensorMeta> outputs, Place place = Place::Cpu());

  const Op& op() const { return op_; }
  const OpDef& def() const { return def_; }
  Place place() const { return place_; }

  // The op's attribute, or the definition's default. Error if neither is there or of another type.
  template <typename T>
  const T& Attr(std::string_view name) const;
  bool HasAttr(std::string_view name) const;
  // An integer attribute that files carry as int or long, and a list of either.
  int64_t IntAttr(std::string_view name) const;
  std::vector<int64_t> IntsAttr(std::string_view name) const;

  // Position of argument `i` of a slot among the op's inputs (outputs), as KernelContext counts
  // them; -1 if the slot is absent or has fewer arguments, or the argument is @EMPTY@.
  int InputIndex(std::string_view slot, size_t i = 0) const;
  int OutputIndex(std::string_view slot, size_t i = 0) const;
  // Number of arguments in a slot, 0 if absent.
  size_t InputCount(std::string_view slot) const;
  size_t OutputCount(std::string_view slot) const;
  bool HasInput(std::string_view slot) const { return InputIndex(slot) >= 0; }
  bool HasOutput(std::string_view slot) const { return OutputIndex(slot) >= 0; }

  // Error if the argument is absent.
  const TensorMeta& Input(std::string_view slot, size_t i = 0) const;
  const TensorMeta& Output(std::string_view slot, size_t i = 0) const;
  std::span<const TensorMeta> inputs() const { return inputs_; }
  std::span<const TensorMeta> outputs() const { return outputs_; }

  // For shape rules; does nothing for an absent argument (outputs are optional to whoever needs
  // them not). The output is dense.
  void SetOutput(std::string_view slot, const Shape& shape, DType dtype, size_t i = 0);
  // The output is selected rows; `shape` is that of the values.
  void SetSelectedRows(std::string_view slot, const Shape& shape, DType dtype, int64_t height,
                       size_t i = 0);
  // Output i of `slot` takes shape, dtype and LoD level of an input, and is selected rows if that
  // is.
  void SetOutputLike(std::string_view slot, std::string_view input_slot, size_t i = 0);

  std::span<TensorMeta> mutable_outputs() { return outputs_; }

 private:
  int IndexOf(const std::vector<SlotDef>& slots, bool is_input, std::string_view slot,
              size_t i) const;
  const Attribute& GetAttr(std::string_view name) const;
  [[noreturn]] void ThrowAttrType(std::string_view name, AttrType expected) const;

  const Op& op_;
  const OpDef& def_;
  std::vector<TensorMeta> inputs_;
  std::vector<TensorMeta> outputs_;
  Place place_;
};

// The arguments of an op in the order of the definition's slots: what KernelContext's indices
// count.
// @EMPTY@ keeps its position.
std::vector<std::string> InputOrder(const OpDef& def, const Op& op);
std::vector<std::string> OutputOrder(const OpDef& def, const Op& op);

template <typename T>
const T& OpContext::Attr(std::string_view name) const {
  const T* value = std::get_if<T>(&GetAttr(name));
  if (value == nullptr) ThrowAttrType(name, TypeOf(Attribute(T{})));
  return *value;
}

// Runs the shape rule. Error, naming slot and variable, for selected rows in a slot that isn't
// marked as one for them.
void InferOutputs(OpContext* context);

// a and b, if both are known, must be equal; the known one is returned. Error naming `what`.
int64_t MergeDims(int64_t a, int64_t b, std::string_view what);

}  // namespace skiff
