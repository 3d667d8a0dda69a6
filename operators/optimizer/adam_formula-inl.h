// adam for one element; see adam.cc. Included in the namespace of each instruction set and of CUDA.
struct AdamFormula {
  static constexpr size_t kStates = 2;
  // kRest is 1 - kBeta.
  enum Coefficient { kBeta1, kRest1, kBeta2, kRest2, kStepSize, kEpsilon };

  template <class Math, class V>
  static constexpr void Update(const Math& math, V grad, V& param, V* states) {
    V& moment1 = states[0];
    V& moment2 = states[1];
    moment1 = math.MulAdd(math[kBeta1], moment1, math.Mul(math[kRest1], grad));
    moment2 = math.MulAdd(math[kBeta2], moment2, math.Mul(math.Mul(math[kRest2], grad), grad));
    const V ratio = math.Div(moment1, math.Add(math.Sqrt(moment2), math[kEpsilon]));
    param = math.NegMulAdd(math[kStepSize], ratio, param);
  }
};
