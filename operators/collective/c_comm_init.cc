// c_comm_init, c_comm_init_all and c_gen_nccl_id: connect the ranks of a program of Fluid.
//
// Source: Fluid's ops, which startup programs of Fleet begin with. In Skiff, ranks are connected
// before a program runs. So these ops do nothing, except that c_comm_init compares the number of
// ranks.
#include <utility>

#include "framework/op/arguments.h"
#include "operators/collective/kernels/collective_definition.h"
#include "operators/common/all_dtypes.h"

namespace skiff {
namespace {

AttrDef Unused(StaticText name, AttrType type, Attribute default_value, StaticText doc) {
  return {.name = name, .type = type, .default_value = std::move(default_value), .doc = doc};
}

// Returns the definition without slots and attributes of its own.
OpDef ConnectionDef(StaticText type, StaticText doc) {
  OpDef def;
  def.type = type;
  def.doc = doc;
  def.attrs = {RingAttrs().front()};
  def.infer = [](OpContext&) {};
  def.precision = Precision::kNone;
  def.no_gradient_reason = "it computes nothing";
  def.collective = true;
  return def;
}

OpDef CommInitDef() {
  OpDef def = ConnectionDef("c_comm_init", "Throws an Error unless there are `nranks` ranks.");
  def.inputs = {{.name = "X", .doc = "Out of c_gen_nccl_id.", .shape_only = true}};
  def.attrs.push_back(RankCountAttr());
  def.attrs.push_back(Unused("rank", AttrType::kInt, int32_t{0}, "PaddlePaddle's; unused."));
  def.attrs.push_back(Unused("device_id", AttrType::kInt, int32_t{-1}, "PaddlePaddle's; unused."));
  return def;
}

OpDef CommInitAllDef() {
  OpDef def = ConnectionDef("c_comm_init_all", "Does nothing.");
  def.attrs.push_back(
      Unused("devices", AttrType::kInts, std::vector<int32_t>(), "PaddlePaddle's; unused."));
  return def;
}

OpDef GenNcclIdDef() {
  OpDef def = ConnectionDef("c_gen_nccl_id", "Does nothing.");
  def.outputs = {{.name = "Out", .doc = "Empty, uint8 [0]."}};
  def.attrs.push_back(
      Unused("endpoint", AttrType::kString, std::string(), "PaddlePaddle's; unused."));
  def.attrs.push_back(Unused("other_endpoints", AttrType::kStrings, std::vector<std::string>(),
                             "PaddlePaddle's; unused."));
  def.attrs.push_back(Unused("rank", AttrType::kInt, int32_t{0}, "PaddlePaddle's; unused."));
  def.infer = [](OpContext& context) { context.SetOutput("Out", {0}, DType::kUint8); };
  return def;
}

}  // namespace

void RegisterCCommInit(OpRegistry& registry) {
  registry.Add(CommInitDef());
  registry.Add(CommInitAllDef());
  registry.Add(GenNcclIdDef());
  AddKernelsForAllDTypes(registry, "c_comm_init", [](PrepareContext& context) {
    return MakeKernel([nranks = context.IntAttr("nranks")](const KernelContext& run) {
      CheckRankCount(run, "c_comm_init", nranks);
    });
  });
  const auto prepare_nothing = [](PrepareContext&) {
    return MakeKernel([](const KernelContext&) {});
  };
  // Without arguments, an op has the kernel of float32.
  registry.AddKernel("c_comm_init_all",
                     KernelDef{.dtype = DType::kFloat32, .prepare = prepare_nothing});
  registry.AddKernel("c_gen_nccl_id",
                     KernelDef{.dtype = DType::kUint8, .prepare = prepare_nothing});
}

}  // namespace skiff
