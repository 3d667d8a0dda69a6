// gelu(x) = x * below(x). Its slope is below(x) + x * density(x). `below` is the integral of the
// normal distribution or, approximately, (1 + tanh(u)) / 2 with
// u = kGeluLinear * x + kGeluCubic * x^3, and `density` is the derivative of `below`. Included in
// the namespace of each instruction set and of CUDA.
inline constexpr double kGeluLinear = 0.79788456080286536;  // sqrt(2 / pi)
inline constexpr double kGeluCubic = kGeluLinear * 0.044715;

// Always inline: a call costs a loop over vectors a fifth of its time.
template <class V>
[[gnu::always_inline]] constexpr Normal<V> GeluCurve(V x, bool approximate) {
  if (!approximate) return NormalAt(x);
  // A slope of 0 times an infinite square would be NaN.
  const V square = AtMost(V(1e4), x * x);
  // (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u))
  const V twice_u = x * MulAdd(V(2 * kGeluCubic), square, V(2 * kGeluLinear));
  const V below = V{1} / (V{1} + QuickExp(BelowExpReach(-twice_u)));
  return {below, below * (V{1} - below) * MulAdd(V(6 * kGeluCubic), square, V(2 * kGeluLinear))};
}

template <class V>
constexpr V Gelu(V x, bool approximate) {
  return AboveMinusInfinity(x) * GeluCurve(x, approximate).below;
}

template <class V>
constexpr V GeluSlope(V any, bool approximate) {
  const V x = NearestFinite(any);
  const Normal<V> curve = GeluCurve(x, approximate);
  return MulAdd(x, curve.density, curve.below);
}
