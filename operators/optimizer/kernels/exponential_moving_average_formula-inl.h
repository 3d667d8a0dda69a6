// The decay of an exponential_moving_average in a step; see exponential_moving_average.cc.
// Included in the namespace of the CPU's kernel and of CUDA's.

// `steps` is ThresSteps. T is the averages' type. The decay is rounded to T, so that the decay
// product is the product of the factors by which the averages were really multiplied.
template <typename T>
constexpr T DecayAt(T decay, int64_t steps) {
  const auto t = static_cast<double>(steps > 0 ? steps : 0);
  const auto grown = static_cast<T>((1 + t) / (10 + t));
  return grown < decay ? grown : decay;
}
