// clip for one element and two bounds; see clip.cc. Included in the namespace of each instruction
// set and of CUDA.
template <class V>
constexpr V Clipped(V x, V low, V high) {
  // Comparisons, since a maximum may turn NaN into a bound.
  const V above = Where(x < low, low, x);
  return Where(above > high, high, above);
}

template <class V>
constexpr V ClippedGradient(V x, V dout, V low, V high) {
  // Both comparisons are false for NaN, so its gradient is 0.
  return OnlyWhere(x > low && x < high, dout);
}
