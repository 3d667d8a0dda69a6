// Bytes to messages, as libprotobuf reads proto2: a field of an unknown number or of another wire
// type is skipped, a repeated scalar may be packed or not, of a field that is there twice the last
// value counts, and the parts of a message that is there twice are put together.
#include "framework/ir/codec_messages.h"

#include <concepts>
#include <limits>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/ir/wire_reader.h"

namespace skiff::wire {
namespace {

template <typename T>
concept Message = requires {
  T::kFields;
};

template <typename T>
concept Enumeration = requires(int32_t value) {
  T::IsKnown(value);
};

// Calls `visit` with each field of the message until it returns true. Returns whether it did.
template <Message M, typename Visit>
bool AnyField(const Visit& visit) {
  constexpr size_t kCount = std::tuple_size_v<decltype(M::kFields)>;
  return [&]<size_t... i>(std::index_sequence<i...>) {
    return (visit(std::get<i>(M::kFields)) || ...);
  }
  (std::make_index_sequence<kCount>());
}

// ---- from bytes

template <typename T>
constexpr pbf_wire_type WireTypeOf() {
  if constexpr (std::same_as<T, std::string_view>) {
    return pbf_wire_type::length_delimited;
  } else if constexpr (std::floating_point<T>) {
    return sizeof(T) == 4 ? pbf_wire_type::fixed32 : pbf_wire_type::fixed64;
  } else {
    return pbf_wire_type::varint;
  }
}

template <typename T>
T ReadScalar(WireReader* reader) {
  if constexpr (std::same_as<T, std::string_view>) {
    return reader->Bytes();
  } else if constexpr (std::floating_point<T>) {
    return reader->Fixed<T>();
  } else {
    return static_cast<T>(reader->Varint());
  }
}

template <Message M>
void Decode(std::string_view bytes, int depth, M* message);

// The overloads of ReadField read the field at which `reader` is, and return false if it is of
// another wire type.
template <typename T>
bool ReadField(WireReader* reader, std::optional<T>* field) {
  if (reader->wire_type() != WireTypeOf<T>()) return false;
  if constexpr (Enumeration<T>) {
    const auto value = ReadScalar<int32_t>(reader);
    if (T::IsKnown(value)) *field = T{value};
  } else {
    *field = ReadScalar<T>(reader);
  }
  return true;
}

template <Message M>
bool ReadField(WireReader* reader, std::unique_ptr<M>* field) {
  if (reader->wire_type() != pbf_wire_type::length_delimited) return false;
  if (*field == nullptr) *field = std::make_unique<M>();
  Decode(reader->Bytes(), reader->depth() + 1, field->get());
  return true;
}

template <typename T>
bool ReadField(WireReader* reader, std::vector<T>* field) {
  if (reader->wire_type() == WireTypeOf<T>()) {
    field->push_back(ReadScalar<T>(reader));
    return true;
  }
  if (reader->wire_type() != pbf_wire_type::length_delimited) return false;
  WireReader packed(reader->Bytes(), reader->depth());
  while (!packed.AtEnd()) field->push_back(ReadScalar<T>(&packed));
  return true;
}

template <Message M>
bool ReadField(WireReader* reader, std::list<M>* field) {
  if (reader->wire_type() != pbf_wire_type::length_delimited) return false;
  Decode(reader->Bytes(), reader->depth() + 1, &field->emplace_back());
  return true;
}

template <Message M>
void Decode(std::string_view bytes, int depth, M* message) {
  WireReader reader(bytes, depth);
  while (reader.Next()) {
    const bool is_read = AnyField<M>([&](const auto& field) {
      return reader.number() == static_cast<pbf_tag_type>(field.number) &&
             ReadField(&reader, &(message->*field.member));
    });
    if (!is_read) reader.Skip();
  }
}

// ---- required fields

// The required fields that messages lack, each with its place. A hostile file may lack very many.
struct Missing {
  static constexpr size_t kMostNames = 20;
  std::vector<std::string> names;
  size_t unnamed = 0;
};

std::string TextOf(const Missing& missing) {
  const std::string names = Join(missing.names, ", ");
  return missing.unnamed == 0 ? names : StrCat(names, " and ", missing.unnamed, " more");
}

// A field of a message that may be in another one. Only a field that is missing needs the text.
struct Place {
  const Place* outer;
  std::string_view field;
  int index = -1;  // in a list
};

std::string TextOf(const Place& place) {
  std::string text = place.outer == nullptr ? "" : TextOf(*place.outer) + ".";
  text += place.field;
  return place.index < 0 ? text : StrCat(text, "[", place.index, "]");
}

template <Message M>
void FindMissing(const M& message, const Place* place, Missing* missing);

// The overloads of FindMissingIn look into the messages of a field.
template <typename Scalars>
void FindMissingIn(const Scalars& /*field*/, const Place& /*place*/, Missing* /*missing*/) {}

template <Message M>
void FindMissingIn(const std::unique_ptr<M>& field, const Place& place, Missing* missing) {
  if (field != nullptr) FindMissing(*field, &place, missing);
}

template <Message M>
void FindMissingIn(const std::list<M>& field, Place place, Missing* missing) {
  for (const M& message : field) {
    ++place.index;
    FindMissing(message, &place, missing);
  }
}

void AddTo(Missing* missing, const Place& place) {
  if (missing->names.size() < Missing::kMostNames) {
    missing->names.push_back(TextOf(place));
  } else {
    ++missing->unnamed;
  }
}

// Adds the required fields that the message at `place` and the messages in it lack.
template <Message M>
void FindMissing(const M& message, const Place* place, Missing* missing) {
  AnyField<M>([&](const auto& field) {
    if constexpr (requires { !(message.*field.member); }) {
      if (field.is_required && !(message.*field.member)) {
        AddTo(missing, Place{place, field.name});
      }
    }
    return false;
  });
  AnyField<M>([&](const auto& field) {
    FindMissingIn(message.*field.member, Place{place, field.name}, missing);
    return false;
  });
}

template <Message M>
M DecodeMessage(std::string_view bytes, std::string_view what) {
  // libprotobuf takes lengths as int.
  const bool fits = bytes.size() <= static_cast<size_t>(std::numeric_limits<int>::max());
  const auto throw_corrupt = [&] {
    Throw(ErrorCode::kDataLoss, "the ", bytes.size(), " bytes are no ", what);
  };
  if (!fits) throw_corrupt();
  M message;
  try {
    Decode(bytes, 0, &message);
  } catch (const protozero::exception&) {
    throw_corrupt();
  }
  Missing missing;
  FindMissing(message, nullptr, &missing);
  SKIFF_ENFORCE(missing.names.empty(), kDataLoss, "the ", what,
                " lacks required fields, or has unknown enumerators in them: ", missing);
  return message;
}

}  // namespace

ProgramDesc DecodeProgram(std::string_view bytes) {
  return DecodeMessage<ProgramDesc>(bytes, "ProgramDesc");
}

TensorDesc DecodeTensor(std::string_view bytes) {
  return DecodeMessage<TensorDesc>(bytes, "TensorDesc");
}

}  // namespace skiff::wire
