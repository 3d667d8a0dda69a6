// A corpus that needs no files, with a small world behind it: people, cities, countries, foods,
// animals and professions, and facts about them. A model that was trained on it can be seen to know
// the world: it fills in an entity that no word of the sentence tells.
//
// Each fact has several wordings. One of them, drawn for each fact, is held back: no document has
// it, and the question about the fact is asked in it. So the fact is told in training, and so is
// the wording about others, but not the sentence of the question.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/text/documents.h"

namespace skiff::models {

enum class EntityType { kPerson, kCity, kCountry, kProfession, kFood, kAnimal };
// "person", "city", …
std::string_view EntityTypeName(EntityType type);

struct Entity {
  std::string name;  // one word or two
  EntityType type = EntityType::kPerson;
  int64_t mentions = 0;  // in the documents
};

// A sentence with an entity to fill in: before + answer + after.
struct Question {
  std::string before;
  std::string answer;  // the name of an entity
  std::string after;
  EntityType type = EntityType::kPerson;  // of the answer
  int64_t times_told = 0;                 // how often the documents tell the fact, at least once
};

struct WorldOptions {
  int64_t documents = 2000;
  int64_t people = 80;      // even, since each has a friend
  int64_t questions = 400;  // at most
  uint64_t seed = 1;
};

struct WorldCorpus {
  std::vector<text::Document> documents;
  std::vector<Entity> entities;  // their names are the lexicon for the masking
  std::vector<Question> questions;
  int64_t facts = 0;

  std::vector<std::string> Lexicon() const;
};

// Returns a world and its documents, a function of the options alone. Documents are lives of a
// person, portraits of a city, and pairs of friends, of 2 to 7 sentences each. Throws Error
// (kInvalidArgument) unless there are at least one document and no negative number of questions,
// and people is even and from 2 to 120.
WorldCorpus GenerateWorldCorpus(const WorldOptions& options);

// The share of questions that a constant answer gets right.
struct FrequencyBaseline {
  double any_entity = 0;  // the entity that the documents mention most
  double same_type = 0;   // the one that they mention most of the type asked for
};
// Throws Error (kInvalidArgument) for a corpus without questions.
FrequencyBaseline MeasureFrequencyBaseline(const WorldCorpus& corpus);

}  // namespace skiff::models
