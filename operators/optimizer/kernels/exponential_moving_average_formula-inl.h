// What is left of an exponential_moving_average after a step; see exponential_moving_average.cc.
// Included in the namespace of the CPU's kernel and of CUDA's.

// `steps`: ThresSteps. T is the averages' type: to it a decay is rounded, so that the product of
// all is that of what the averages were multiplied by.
template <typename T>
constexpr T DecayAt(T decay, int64_t steps) {
  const auto t = static_cast<double>(steps > 0 ? steps : 0);
  const auto grown = static_cast<T>((1 + t) / (10 + t));
  return grown < decay ? grown : decay;
}
