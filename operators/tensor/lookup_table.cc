// lookup_table: Out[i, :] = W[Ids[i, 0], :], and zeros where Ids[i, 0] == padding_idx.
//
// Source: Fluid's lookup_table, the older form of lookup_table_v2: the last dim of Ids is 1 and is
// dropped. The attributes that lookup_table_v2 lacks control Fluid's parameter servers and are
// ignored, except for the servers' addresses: if there are any, the table isn't in this process.
#include "operators/tensor/kernels/table_lookup.h"

namespace skiff {
namespace {

template <typename T>
AttrDef Ignored(StaticText name, AttrType type, T value) {
  return {.name = name,
          .type = type,
          .default_value = Attribute(std::move(value)),
          .doc = "A hint to Fluid's parameter servers; ignored."};
}

AttrDef NoServers() {
  return {
      .name = "epmap",
      .type = AttrType::kStrings,
      .default_value = std::vector<std::string>{},
      .doc = "The addresses of Fluid's parameter servers; only an empty list is supported.",
      .accepts =
          [](const Attribute& value) { return std::get<std::vector<std::string>>(value).empty(); },
      .expected = "none: the table must be in this process",
      .refusal = ErrorCode::kUnimplemented};
}

}  // namespace

void RegisterLookupTable(OpRegistry& registry) {
  AddLookupOps(
      registry,
      {.type = "lookup_table",
       .doc = "Out[i, :] = W[Ids[i, 0], :]; zeros where Ids[i, 0] == padding_idx.",
       .ids_doc = "Row numbers, int64 or int32, [..., 1].",
       .ids_are_columns = true,
       .more_attrs = {
           Ignored("entry_config", AttrType::kString, std::string()),
           Ignored("entry", AttrType::kString, std::string("none")),
           Ignored("table_class", AttrType::kString, std::string("none")),
           Ignored("table_names", AttrType::kStrings, std::vector<std::string>{}), NoServers(),
           Ignored("height_sections", AttrType::kLongs, std::vector<int64_t>{}),
           Ignored("trainer_id", AttrType::kInt, int32_t{0}),
           Ignored("slot", AttrType::kInt, int32_t{0}), Ignored("is_test", AttrType::kBool, false),
           Ignored("grad_inplace", AttrType::kBool, false)}});
}

}  // namespace skiff
