// Positions of elements, for the naive references of the ops that move elements.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/tensor/shape.h"
#include "tests/harness/op_case.h"

namespace skiff::harness {

// The coordinates of element `index` of a row-major tensor.
inline std::vector<int64_t> CoordinatesOf(const Shape& shape, int64_t index) {
  std::vector<int64_t> coordinates(static_cast<size_t>(shape.rank()));
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    coordinates[static_cast<size_t>(axis)] = index % shape[axis];
    index /= shape[axis];
  }
  return coordinates;
}

// The inverse of CoordinatesOf.
inline size_t IndexOf(const Shape& shape, const std::vector<int64_t>& coordinates) {
  int64_t index = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    index = index * shape[axis] + coordinates[static_cast<size_t>(axis)];
  }
  return static_cast<size_t>(index);
}

// An array of `shape` whose elements are `value(coordinates)`.
template <typename Value>
Array Generated(const Shape& shape, const Value& value) {
  Array array{.shape = shape, .values = {}};
  for (int64_t i = 0; i < shape.element_count(); ++i) {
    array.values.push_back(value(CoordinatesOf(shape, i)));
  }
  return array;
}

// `array` with the dtype of `from`.
inline Array TypedLike(Array array, const Array& from) {
  array.fixed_dtype = from.fixed_dtype;
  array.dtype = from.dtype;
  return array;
}

// `array` in another shape, with its dtype.
inline Array Reshaped(Array array, const Shape& shape) {
  array.shape = shape;
  return array;
}

// Returns XShape for an X of `shape`: a case lists XShape, and its dims are compared.
inline Array XShapeOf(const Array& x) {
  Array array = x;
  array.shape = Shape{0};
  for (const int64_t dim : x.shape) array.shape.Append(dim);
  array.values.clear();
  return array;
}

// A case of an op that gives the elements of X another shape.
inline OpCase ReshapingCase(const std::string& type, const std::string& name, const Array& x,
                            AttributeMap attrs, const Shape& out) {
  return {.name = name,
          .type = type,
          .inputs = {{"X", {x}}},
          .attrs = std::move(attrs),
          .reference =
              [out](const Arrays& inputs) {
                const Array& given = inputs.at("X")[0];
                return Arrays{{"Out", {Reshaped(given, out)}}, {"XShape", {XShapeOf(given)}}};
              },
          .outputs = {{"Out", 1}, {"XShape", 1}},
          .gradients = x.fixed_dtype ? std::vector<std::string>{} : std::vector<std::string>{"X"},
          .loss_outputs = {"Out"},
          .accepted_wrong_inputs = {
              {"Out@GRAD", "other rank", "XShape tells the number of elements alone"},
              {"XShape", "other rank", "nothing but XShape tells the dims of X"}}};
}

}  // namespace skiff::harness
