#include "models/common/world_corpus.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <span>

#include "framework/base/error.h"
#include "framework/text/random_draws.h"
#include "framework/training/data_random.h"

namespace skiff::models {
namespace {

constexpr std::array<std::string_view, 60> kWomen = {
    "Abigail", "Adele",   "Agnes",  "Alma",   "Amelia", "Beatrice", "Bertha",  "Bridget",
    "Camilla", "Cecilia", "Clara",  "Cora",   "Daphne", "Delia",    "Edith",   "Eleanor",
    "Elvira",  "Emma",    "Esther", "Fiona",  "Flora",  "Frieda",   "Gloria",  "Greta",
    "Hannah",  "Harriet", "Helena", "Ingrid", "Irene",  "Isabel",   "Johanna", "Judith",
    "Karin",   "Laura",   "Leonie", "Linda",  "Louisa", "Magda",    "Martha",  "Matilda",
    "Miriam",  "Nadia",   "Naomi",  "Nora",   "Olga",   "Paula",    "Petra",   "Rachel",
    "Rebecca", "Roberta", "Sabina", "Selma",  "Sophia", "Tamara",   "Teresa",  "Ursula",
    "Valerie", "Vera",    "Wanda",  "Yvonne"};
constexpr std::array<std::string_view, 60> kMen = {
    "Adrian",  "Albert",  "Alfred",  "Anton",   "Arthur",  "Basil",   "Bernard",   "Boris",
    "Bruno",   "Caspar",  "Cedric",  "Clemens", "Conrad",  "Cyril",   "Daniel",    "Dennis",
    "Edgar",   "Edmund",  "Emil",    "Ernest",  "Eugene",  "Felix",   "Ferdinand", "Fergus",
    "Gavin",   "George",  "Gerald",  "Gilbert", "Gustav",  "Harold",  "Hector",    "Henry",
    "Herbert", "Hugo",    "Ivan",    "Jasper",  "Jerome",  "Joachim", "Julian",    "Karl",
    "Kenneth", "Lambert", "Leopold", "Lucas",   "Malcolm", "Marcus",  "Maurice",   "Nathan",
    "Oliver",  "Oscar",   "Percy",   "Quentin", "Ralph",   "Roland",  "Rupert",    "Samuel",
    "Theodor", "Victor",  "Walter",  "Xavier"};
constexpr std::array<std::string_view, 36> kCities = {
    "Aldmoor",     "Arvenna",       "Belcastle", "Brindova", "Calmera",     "Carrowby",
    "Dorvale",     "Drossen",       "Eastmere",  "Elmira",   "Fallowick",   "Ferrano",
    "Galdon",      "Grimsey",       "Halvik",    "Hestora",  "Ilmenau",     "Jorvin",
    "Kestrel Bay", "Kolvara",       "Lindholm",  "Lorvessa", "Marrow Hill", "Mirelle",
    "Norwick",     "Ostrava Point", "Pellan",    "Quillon",  "Redwater",    "Sundvale",
    "Tarsk",       "Thornbury",     "Ullswick",  "Velmora",  "Westering",   "Zandria"};
constexpr std::array<std::string_view, 12> kCountries = {
    "Andoria", "Borland",  "Cindara",  "Drovia", "Estmark",    "Fenland",
    "Gallia",  "Hyrkania", "Illandia", "Jutria", "New Karesh", "Lower Moravia"};
constexpr std::array<std::string_view, 24> kProfessions = {
    "baker",   "carpenter", "dentist",    "farmer",      "gardener",     "judge",
    "lawyer",  "miner",     "nurse",      "painter",     "pilot",        "plumber",
    "poet",    "potter",    "sailor",     "singer",      "surgeon",      "tailor",
    "teacher", "weaver",    "bus driver", "clock maker", "fire fighter", "piano tuner"};
constexpr std::array<std::string_view, 24> kFoods = {
    "bread",      "cheese",   "chocolate",   "curry",        "dumplings",    "fish soup",
    "goulash",    "honey",    "lentil stew", "marmalade",    "mushroom pie", "noodles",
    "olives",     "pancakes", "pasta",       "plum cake",    "porridge",     "rice pudding",
    "roast duck", "salad",    "sausage",     "strawberries", "trout",        "waffles"};
constexpr std::array<std::string_view, 16> kAnimals = {
    "cat",    "dog",  "donkey", "falcon",  "goat",       "hamster",  "horse",    "lizard",
    "parrot", "pony", "rabbit", "spaniel", "guinea pig", "barn owl", "tortoise", "goose"};

enum class Relation {
  kLivesIn,
  kBornIn,
  kWorksAs,
  kLikes,
  kFriendOf,
  kKeeps,
  kCapital,    // of a country
  kInCountry,  // of a city
  kFamousFor,  // of a city
};

// {name} is the subject, {who} and {whose} may be a pronoun instead, {what} is the object and
// {a} the article before it. No common noun starts a sentence: its case would change.
struct Wording {
  Relation relation;
  EntityType object;
  std::array<std::string_view, 6> sentences;
};

constexpr std::array<Wording, 9> kWordings = {{
    {Relation::kLivesIn,
     EntityType::kCity,
     {"{who} lives in {what}.", "{whose} home is in {what}.", "{what} is where {who} lives.",
      "The house of {name} stands in {what}.", "You can visit {name} in {what}.",
      "{who} has a flat in the centre of {what}."}},
    {Relation::kBornIn,
     EntityType::kCity,
     {"{who} was born in {what}.", "{who} came into the world in {what}.",
      "{whose} place of birth is {what}.", "{what} is where {who} was born.",
      "The birthplace of {name} is {what}.", "{whose} parents had {whose} cradle in {what}."}},
    {Relation::kWorksAs,
     EntityType::kProfession,
     {"{who} works as {a} {what}.", "{who} is {a} {what} by trade.",
      "{who} earns a living as {a} {what}.", "By profession {who} is {a} {what}.",
      "Everybody knows {name} as a good {what}.", "{whose} job is that of {a} {what}."}},
    {Relation::kLikes,
     EntityType::kFood,
     {"{whose} favourite food is {what}.", "{who} could eat {what} every day.",
      "Nothing tastes better to {name} than {what}.", "{who} always orders {what}.",
      "For dinner {who} wants {what}.", "{who} likes {what} best of all."}},
    {Relation::kFriendOf,
     EntityType::kPerson,
     {"{whose} best friend is {what}.", "{who} is a close friend of {what}.",
      "{who} spends every weekend with {what}.", "{name} and {what} are best friends.",
      "{who} has known {what} since school.", "{who} often writes letters to {what}."}},
    {Relation::kKeeps,
     EntityType::kAnimal,
     {"{who} keeps {a} {what}.", "{whose} pet is {a} {what}.", "At home {who} has {a} {what}.",
      "{who} looks after {a} {what}.", "{who} shares the house with {a} {what}.",
      "{name} is the proud owner of {a} {what}."}},
    {Relation::kCapital,
     EntityType::kCity,
     {"The capital of {name} is {what}.", "{what} is the capital of {name}.",
      "{name} is governed from {what}.", "The parliament of {name} sits in {what}.",
      "The king of {name} has a palace in {what}.", "All roads of {name} lead to {what}."}},
    {Relation::kInCountry,
     EntityType::kCountry,
     {"{name} is a city in {what}.", "{name} lies in {what}.", "{name} belongs to {what}.",
      "The people of {name} are citizens of {what}.", "The flag of {what} flies over {name}.",
      "On the map you find {name} in {what}."}},
    {Relation::kFamousFor,
     EntityType::kFood,
     {"{name} is famous for its {what}.", "People travel to {name} for the {what}.",
      "The cooks of {name} are proud of their {what}.", "In {name} everybody eats {what}.",
      "The market of {name} is full of {what}.", "A visitor of {name} has to try the {what}."}},
}};

struct Fact {
  Relation relation = Relation::kLivesIn;
  size_t subject = 0;  // index of the entity
  size_t object = 0;
  size_t held_back = 0;  // the wording that no document has
  int64_t times_told = 0;
};

const Wording& WordingOf(Relation relation) { return kWordings[static_cast<size_t>(relation)]; }

std::string_view ArticleBefore(std::string_view word) {
  return std::string_view("aeiou").find(word.front()) == std::string_view::npos ? "a" : "an";
}

void ReplaceAll(std::string_view from, std::string_view to, std::string* text) {
  for (size_t at = text->find(from); at != std::string::npos;
       at = text->find(from, at + to.size())) {
    text->replace(at, from.size(), to);
  }
}

std::string Capitalized(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

class World {
 public:
  explicit World(const WorldOptions& options)
      : options_(options),
        random_(training::DataRandom(options.seed, training::DataStream::kTrainingSamples, 0)) {
    MakeEntities();
    MakePlaces();
    MakePeople();
    for (Fact& fact : facts_) {
      fact.held_back = Draw(WordingOf(fact.relation).sentences.size());
    }
  }

  WorldCorpus Write() {
    WorldCorpus corpus;
    for (int64_t i = 0; i < options_.documents; ++i) corpus.documents.push_back(WriteDocument());
    corpus.questions = MakeQuestions();
    corpus.facts = static_cast<int64_t>(facts_.size());
    corpus.entities = std::move(entities_);
    return corpus;
  }

 private:
  // The entities of a type: indices from `first` on.
  struct Range {
    size_t first = 0;
    size_t count = 0;
  };
  // How a sentence calls its subject.
  enum class SubjectForm { kName, kPronoun };

  size_t Draw(size_t count) {
    return static_cast<size_t>(random_.Below(static_cast<int64_t>(count)));
  }

  Range& RangeOf(EntityType type) { return ranges_[static_cast<size_t>(type)]; }

  void AddEntities(EntityType type, std::span<const std::string_view> names) {
    if (RangeOf(type).count == 0) RangeOf(type).first = entities_.size();
    RangeOf(type).count += names.size();
    for (const std::string_view name : names) entities_.push_back({std::string(name), type, 0});
  }

  void MakeEntities() {
    const auto half = static_cast<size_t>(options_.people / 2);
    AddEntities(EntityType::kPerson, std::span(kWomen).first(half));
    women_ = half;
    AddEntities(EntityType::kPerson, std::span(kMen).first(half));
    AddEntities(EntityType::kCity, kCities);
    AddEntities(EntityType::kCountry, kCountries);
    AddEntities(EntityType::kProfession, kProfessions);
    AddEntities(EntityType::kFood, kFoods);
    AddEntities(EntityType::kAnimal, kAnimals);
    facts_of_.resize(entities_.size());
    mentioned_in_.resize(entities_.size());
  }

  void AddFact(Relation relation, size_t subject, size_t object) {
    facts_of_[subject].push_back(facts_.size());
    mentioned_in_[object].push_back(facts_.size());
    facts_.push_back({.relation = relation, .subject = subject, .object = object});
  }

  size_t DrawEntity(EntityType type) { return RangeOf(type).first + Draw(RangeOf(type).count); }

  std::vector<size_t> Shuffled(EntityType type) {
    std::vector<size_t> indices(RangeOf(type).count);
    std::iota(indices.begin(), indices.end(), RangeOf(type).first);
    random_.Shuffle(&indices);
    return indices;
  }

  // Each country has as many cities as the others; the first is its capital.
  void MakePlaces() {
    const std::vector<size_t> cities = Shuffled(EntityType::kCity);
    const Range countries = RangeOf(EntityType::kCountry);
    for (size_t i = 0; i < cities.size(); ++i) {
      const size_t country = countries.first + i % countries.count;
      if (i < countries.count) AddFact(Relation::kCapital, country, cities[i]);
      AddFact(Relation::kInCountry, cities[i], country);
      AddFact(Relation::kFamousFor, cities[i], DrawEntity(EntityType::kFood));
    }
  }

  void MakePeople() {
    const std::vector<size_t> people = Shuffled(EntityType::kPerson);
    for (size_t i = 0; i < people.size(); ++i) {
      const size_t person = people[i];
      AddFact(Relation::kLivesIn, person, DrawEntity(EntityType::kCity));
      AddFact(Relation::kBornIn, person, DrawEntity(EntityType::kCity));
      AddFact(Relation::kWorksAs, person, DrawEntity(EntityType::kProfession));
      AddFact(Relation::kLikes, person, DrawEntity(EntityType::kFood));
      AddFact(Relation::kKeeps, person, DrawEntity(EntityType::kAnimal));
      AddFact(Relation::kFriendOf, person, people[i ^ 1]);
    }
  }

  bool IsWoman(size_t person) const { return person < women_; }

  // The sentence in this wording, with {what} still in it.
  std::string Sentence(const Fact& fact, size_t wording, SubjectForm form) const {
    std::string sentence(WordingOf(fact.relation).sentences[wording]);
    const std::string& name = entities_[fact.subject].name;
    const bool woman = IsWoman(fact.subject);
    const bool by_name = form == SubjectForm::kName;
    if (!by_name) {
      ReplaceAll("{who}", woman ? "she" : "he", &sentence);
    } else {
      ReplaceAll("{who}", name, &sentence);
      // Only the first mention by name: "Emma's parents had her cradle".
      const size_t whose = sentence.find("{whose}");
      if (whose != std::string::npos) sentence.replace(whose, 7, name + "'s");
    }
    ReplaceAll("{whose}", woman ? "her" : "his", &sentence);
    ReplaceAll("{name}", name, &sentence);
    ReplaceAll("{a}", ArticleBefore(entities_[fact.object].name), &sentence);
    return Capitalized(std::move(sentence));
  }

  // Tells a fact in a wording that isn't held back.
  void Tell(size_t index, SubjectForm form, text::Document* document) {
    Fact& fact = facts_[index];
    size_t wording = Draw(WordingOf(fact.relation).sentences.size() - 1);
    if (wording >= fact.held_back) ++wording;
    std::string sentence = Sentence(fact, wording, form);
    const bool names_subject = sentence.find(entities_[fact.subject].name) != std::string::npos;
    if (names_subject) ++entities_[fact.subject].mentions;
    ++entities_[fact.object].mentions;
    ++fact.times_told;
    ReplaceAll("{what}", entities_[fact.object].name, &sentence);
    document->push_back(std::move(sentence));
  }

  std::vector<size_t> ShuffledFactsOf(size_t entity) {
    std::vector<size_t> facts = facts_of_[entity];
    random_.Shuffle(&facts);
    return facts;
  }

  text::Document WriteDocument() {
    const size_t kind = Draw(10);
    if (kind < 6) return WriteLife();
    if (kind < 8) return WriteFriends();
    return WritePortrait();
  }

  // A person's name, then mostly pronouns.
  text::Document WriteLife() {
    text::Document document;
    std::vector<size_t> facts = ShuffledFactsOf(DrawEntity(EntityType::kPerson));
    facts.resize(4 + Draw(3));
    for (const size_t fact : facts) {
      const bool by_name = document.empty() || Draw(2) == 0;
      Tell(fact, by_name ? SubjectForm::kName : SubjectForm::kPronoun, &document);
    }
    return document;
  }

  text::Document WriteFriends() {
    text::Document document;
    const size_t person = DrawEntity(EntityType::kPerson);
    const auto friendship = [&](size_t fact) {
      return facts_[fact].relation == Relation::kFriendOf;
    };
    std::vector<size_t> own = ShuffledFactsOf(person);
    const auto found = std::find_if(own.begin(), own.end(), friendship);
    Tell(*found, SubjectForm::kName, &document);
    std::vector<size_t> theirs = ShuffledFactsOf(facts_[*found].object);
    std::erase_if(own, friendship);
    std::erase_if(theirs, friendship);
    const size_t count = 1 + Draw(3);
    for (size_t i = 0; i < count; ++i) {
      Tell(own[i], SubjectForm::kName, &document);
      Tell(theirs[i], SubjectForm::kName, &document);
    }
    return document;
  }

  // A city, its country, and people who have to do with it.
  text::Document WritePortrait() {
    text::Document document;
    const size_t city = DrawEntity(EntityType::kCity);
    for (const size_t fact : ShuffledFactsOf(city)) Tell(fact, SubjectForm::kName, &document);
    std::vector<size_t> mentions = mentioned_in_[city];
    random_.Shuffle(&mentions);
    const size_t people = std::min(mentions.size(), 1 + Draw(4));
    for (size_t i = 0; i < people; ++i) Tell(mentions[i], SubjectForm::kName, &document);
    return document;
  }

  std::vector<Question> MakeQuestions() {
    std::vector<size_t> told;
    for (size_t i = 0; i < facts_.size(); ++i) {
      if (facts_[i].times_told > 0) told.push_back(i);
    }
    random_.Shuffle(&told);
    told.resize(std::min(told.size(), static_cast<size_t>(options_.questions)));
    std::vector<Question> questions;
    for (const size_t index : told) {
      const Fact& fact = facts_[index];
      const std::string sentence = Sentence(fact, fact.held_back, SubjectForm::kName);
      constexpr std::string_view kObject = "{what}";
      const size_t at = sentence.find(kObject);
      questions.push_back({.before = sentence.substr(0, at),
                           .answer = entities_[fact.object].name,
                           .after = sentence.substr(at + kObject.size()),
                           .type = entities_[fact.object].type,
                           .times_told = fact.times_told});
    }
    return questions;
  }

  WorldOptions options_;
  text::RandomDraws random_;
  std::vector<Entity> entities_;
  std::array<Range, 6> ranges_{};
  size_t women_ = 0;  // the first people
  std::vector<Fact> facts_;
  std::vector<std::vector<size_t>> facts_of_;      // by subject
  std::vector<std::vector<size_t>> mentioned_in_;  // by object
};

}  // namespace

std::string_view EntityTypeName(EntityType type) {
  constexpr std::array<std::string_view, 6> kNames = {"person",     "city", "country",
                                                      "profession", "food", "animal"};
  return kNames[static_cast<size_t>(type)];
}

std::vector<std::string> WorldCorpus::Lexicon() const {
  std::vector<std::string> names;
  for (const Entity& entity : entities) names.push_back(entity.name);
  return names;
}

WorldCorpus GenerateWorldCorpus(const WorldOptions& options) {
  // More would only fill the memory: the world has far less to tell.
  constexpr int64_t kMostDocuments = 10'000'000;
  constexpr auto kMostPeople = static_cast<int64_t>(kWomen.size() + kMen.size());
  SKIFF_ENFORCE(options.documents >= 1 && options.questions >= 0, kInvalidArgument,
                "documents = ", options.documents, ", questions = ", options.questions,
                ": expected at least one document, and no negative number");
  SKIFF_ENFORCE(options.documents <= kMostDocuments && options.questions <= kMostDocuments,
                kInvalidArgument, "documents = ", options.documents,
                ", questions = ", options.questions, ": expected at most ", kMostDocuments);
  SKIFF_ENFORCE(options.people >= 2 && options.people <= kMostPeople && options.people % 2 == 0,
                kInvalidArgument, "people = ", options.people,
                ": expected an even number from 2 to ", kMostPeople);
  return World(options).Write();
}

FrequencyBaseline MeasureFrequencyBaseline(const WorldCorpus& corpus) {
  SKIFF_ENFORCE(!corpus.questions.empty(), kInvalidArgument, "a corpus without questions");
  const auto most_frequent = [&](std::optional<EntityType> type) {
    const Entity* best = nullptr;
    for (const Entity& entity : corpus.entities) {
      if (type.has_value() && entity.type != *type) continue;
      if (best == nullptr || entity.mentions > best->mentions) best = &entity;
    }
    return best == nullptr ? std::string() : best->name;
  };
  const std::string overall = most_frequent(std::nullopt);
  FrequencyBaseline right;
  for (const Question& question : corpus.questions) {
    right.any_entity += question.answer == overall ? 1 : 0;
    right.same_type += question.answer == most_frequent(question.type) ? 1 : 0;
  }
  const auto count = static_cast<double>(corpus.questions.size());
  return {.any_entity = right.any_entity / count, .same_type = right.same_type / count};
}

}  // namespace skiff::models
