// adam for one element; see adam.cc. Included in the namespace of each instruction set and of CUDA.
struct AdamFormula {
  static constexpr size_t kStates = 2;
  // kRest is 1 - kBeta. Optimizers built on this one have theirs from kOthers on.
  enum Coefficient { kBeta1, kRest1, kBeta2, kRest2, kStepSize, kEpsilon, kOthers };

  template <class Math, class V>
  static constexpr void MoveMoments(const Math& math, V grad, V* states) {
    states[0] = math.MulAdd(math[kBeta1], states[0], math.Mul(math[kRest1], grad));
    states[1] = math.MulAdd(math[kBeta2], states[1], math.Mul(math.Mul(math[kRest2], grad), grad));
  }

  template <class Math, class V>
  static constexpr V Direction(const Math& math, const V* states) {
    return math.Div(states[0], math.Add(math.Sqrt(states[1]), math[kEpsilon]));
  }

  template <class Math, class V>
  static constexpr void Update(const Math& math, V grad, V& param, V* states) {
    MoveMoments(math, grad, states);
    param = math.NegMulAdd(math[kStepSize], Direction(math, states), param);
  }
};
