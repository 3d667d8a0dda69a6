#include "tests/harness/op_case.h"

namespace skiff::harness {

void AddCCommInitCases(CaseList& cases) {
  const auto nothing = [](const Arrays&) { return Arrays(); };
  for (const Array& id : {Values({0}, {}, DType::kUint8), Values({0}, {})}) {
    cases.push_back({.name = id.fixed_dtype ? "alone" : "alone_with_another_id",
                     .type = "c_comm_init",
                     .inputs = {{"X", {id}}},
                     .attrs = {{"nranks", int32_t{1}}, {"rank", int32_t{0}}},
                     .reference = nothing});
  }
  cases.push_back({.name = "devices",
                   .type = "c_comm_init_all",
                   .attrs = {{"devices", std::vector<int32_t>{0, 1}}},
                   .reference = nothing});
  cases.push_back({.name = "id",
                   .type = "c_gen_nccl_id",
                   .attrs = {{"endpoint", std::string("127.0.0.1:6175")}},
                   .reference =
                       [](const Arrays&) {
                         return Arrays{{"Out", {Values({0}, {}, DType::kUint8)}}};
                       },
                   .outputs = {{"Out", 1}}});
}

}  // namespace skiff::harness
