// The gradient of one element as formulas take it; see update_op_shared.h. Included in the
// namespace of each instruction set and of CUDA.
struct GradientFormula {
  // Each step is rounded for itself, as the ops are that a program would have in place of the form.
  template <class Math, class Form, class V>
  static constexpr V Formed(const Math& math, const Form& form, V grad, V param) {
    V formed = math.Mul(grad, math.Number(form.rescale));
    formed = math.Mul(formed, math.Number(form.scale));
    if (form.l2_decay != 0) formed = math.Add(formed, math.Mul(param, math.Number(form.l2_decay)));
    if (form.l1_decay != 0) {
      const V zero = math.Number(0);
      const V decay = math.CopySign(math.Number(form.l1_decay), param);
      formed = math.Add(formed, math.WhereEqual(param, zero, zero, decay));
    }
    return formed;
  }
};
