// The formula of label_smooth and of its gradient (kept = 1 - epsilon, and no share), which
// label_smooth.cc states. Included in the namespace of each place.
template <typename T>
constexpr T SmoothedLabel(T label, T kept, T share) {
  return kept * label + share;
}
