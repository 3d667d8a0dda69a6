// adamax for one element; see adamax.cc. Included in the namespace of each instruction set and of
// CUDA.
struct AdamaxFormula {
  static constexpr size_t kStates = 2;
  enum Coefficient { kBeta1, kRest1, kBeta2, kStepSize, kEpsilon };  // kRest1: 1 - kBeta1

  template <class Math, class V>
  static constexpr void Update(const Math& math, V grad, V& param, V* states) {
    V& moment = states[0];
    V& norm = states[1];
    moment = math.MulAdd(math[kBeta1], moment, math.Mul(math[kRest1], grad));
    norm = math.Max(math.Abs(grad), math.MulAdd(math[kBeta2], norm, math[kEpsilon]));
    param = math.NegMulAdd(math[kStepSize], math.Div(moment, norm), param);
  }
};
