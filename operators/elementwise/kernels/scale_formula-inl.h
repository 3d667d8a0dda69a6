// scale for one element; see scale.cc. Included in the namespace of each instruction set and of
// CUDA.
template <class V>
constexpr V Scaled(V x, V factor, V bias) {
  if constexpr (std::is_integral_v<V>) {
    return WrappingAdd(WrappingMul(x, factor), bias);
  } else {
    return MulAdd(x, factor, bias);
  }
}
// Without the rounding of factor * bias.
template <class V>
constexpr V ShiftedAndScaled(V x, V factor, V bias) {
  return WrappingMul(WrappingAdd(x, bias), factor);
}
