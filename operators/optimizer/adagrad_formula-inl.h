// adagrad and decayed_adagrad for one element; see adagrad.cc. Included in the namespace of each
// instruction set and of CUDA.
struct AdagradFormula {
  static constexpr size_t kStates = 1;
  enum Coefficient { kRate, kKept, kAdded, kEpsilon };  // kKept of the moment, kAdded of grad²

  template <class Math, class V>
  static constexpr void Update(const Math& math, V grad, V& param, V* states) {
    V& moment = states[0];
    const V added = math.Mul(math.Mul(math[kAdded], grad), grad);
    moment = math.MulAdd(math[kKept], moment, added);
    const V ratio = math.Div(grad, math.Add(math.Sqrt(moment), math[kEpsilon]));
    param = math.NegMulAdd(math[kRate], ratio, param);
  }
};
