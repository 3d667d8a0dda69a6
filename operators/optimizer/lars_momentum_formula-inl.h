// lars_momentum for one element; see lars_momentum.cc. Included in the namespace of each
// instruction set and of CUDA.
struct LarsMomentumFormula {
  static constexpr size_t kStates = 1;
  enum Coefficient { kLocalRate, kMu, kDecay };

  template <class Math, class V>
  static constexpr void Update(const Math& math, V grad, V& param, V* states) {
    V& velocity = states[0];
    const V decayed = math.MulAdd(math[kDecay], param, grad);
    velocity = math.MulAdd(math[kMu], velocity, math.Mul(math[kLocalRate], decayed));
    param = math.Sub(param, velocity);
  }
};
