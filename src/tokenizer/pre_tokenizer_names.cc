// SPDX-License-Identifier: Apache-2.0
// What each name means. Where the model's own tokenizer.json and llama.cpp's adaptation of its expression differ (the case of
// letters outside ASCII in the GPT-4o family, Kimi's Han), the model's own is meant here: it is what the model was trained on.
#include "tokenizer/pre_tokenizer_names.h"

#include <algorithm>

namespace weir::tokenizer {
namespace {

using Step = PreTokenizerStep;
using enum ScannerFamily;
using enum Contractions;

constexpr ScannerRules kGpt2Rules{.family = kGpt2};
constexpr ScannerRules kGpt2SingleDigits{.family = kGpt2, .digits = 1, .digits_first = true};
constexpr ScannerRules kLlama3Rules{.family = kCl100k, .contractions = kFolded, .digits = 3};
constexpr ScannerRules kQwen2Rules{.family = kCl100k, .contractions = kFolded, .digits = 1};
constexpr ScannerRules kQwen35Rules{.family = kCl100k, .contractions = kFolded, .digits = 1, .marks_are_letters = true};
constexpr ScannerRules kSeedCoderRules{.family = kCl100k, .contractions = kFolded, .digits = 1, .newlines_after_others = false};
constexpr ScannerRules kUfakzekaRules{.family = kCl100k, .contractions = kNone, .digits = 1};
constexpr ScannerRules kAnyDigitsRules{.family = kCl100k, .contractions = kFolded, .digits = 0};
constexpr ScannerRules kGpt4oRules{.family = kO200k, .contractions = kFolded, .digits = 3, .slash_after_others = true};
constexpr ScannerRules kYoutuRules{.family = kO200k, .contractions = kFolded, .digits = 1, .slash_after_others = true};
constexpr ScannerRules kTekkenRules{.family = kO200k, .contractions = kNone, .digits = 1, .slash_after_others = true};
constexpr ScannerRules kDigitGroups{.family = kDigitGroups3};
constexpr ScannerRules kDigitGroupsAtWordEnd{.family = kDigitGroups3AtWordEnd};
constexpr ScannerRules kNumberGroups{.family = kNumberGroups3};
constexpr ScannerRules kLines{.family = kNewlineRuns};

constexpr std::string_view kDefaultPunctuation = R"([\p{P}\$\+<=>\^~\|]+)";
constexpr std::string_view kThreeDigits = "[0-9][0-9][0-9]";
constexpr std::string_view kNumbers = R"(\p{N}+)";
constexpr std::string_view kOneNumber = R"(\p{N})";
constexpr std::string_view kUpToThreeNumbers = R"(\p{N}{1,3})";
constexpr std::string_view kOneNewline = R"([\r\n])";
// \s+$ without trying again inside of the run
constexpr std::string_view kSpacesAtEnd = R"((?<!\s)\s++\z)";
constexpr std::string_view kHanAndKana = R"([一-龥぀-ゟ゠-ヿ]+)";
constexpr std::string_view kCjk = R"([一-龥ࠀ-一가-퟿]+)";
constexpr std::string_view kDeepseekLetters = R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕ)"
                                              R"(ἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛ)"
                                              R"(Ꜣ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)";
constexpr std::string_view kDeepseekPunctuation = R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)";
constexpr std::string_view kDeepseek3 = R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[)"
                                        R"(\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kSpark = R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[)"
                                    R"(\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view kAsianRuns =
    R"([一-鿿㐀-䶿豈-﫿぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+)";
constexpr std::string_view kBloom = R"( ?[^(\s|.,!?…。，、।۔،)]+)";
constexpr std::string_view kExaoneMoe = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}\p{M}*+(?: ?\p{L}\p{M}*+)*+|\p{N}| )"
                                        R"(?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view kJais2 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n)"
                                    R"(]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16})"
                                    R"((?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})";
constexpr std::string_view kKimiK2 =
    R"([\p{Han}]+)"
    R"(|[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])*(?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])+(?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kYoutuScripts =
    R"([가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+)";

constexpr Step kDefault[] = {kDefaultPunctuation, kGpt2Rules, kNumbers, kThreeDigits};
constexpr Step kFalcon[] = {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2Rules, kThreeDigits};
constexpr Step kGpt2Steps[] = {kGpt2Rules};
constexpr Step kSingleDigits[] = {kGpt2SingleDigits};
constexpr Step kLlama3[] = {kLlama3Rules};
constexpr Step kQwen2[] = {kQwen2Rules};
constexpr Step kQwen35[] = {kQwen35Rules};
constexpr Step kSeedCoder[] = {kSeedCoderRules};
constexpr Step kUfakzeka[] = {kUfakzekaRules};
constexpr Step kLaguna[] = {kLines, kQwen2Rules};
constexpr Step kMiniCpm5[] = {kUpToThreeNumbers, kAnyDigitsRules};
constexpr Step kGpt4o[] = {kGpt4oRules};
constexpr Step kTekken[] = {kTekkenRules};
constexpr Step kTinyAya[] = {kDigitGroupsAtWordEnd, kGpt4oRules};
constexpr Step kYoutu[] = {kYoutuScripts, kYoutuRules};
constexpr Step kDeepseekLlm[] = {kOneNewline, kDeepseekLetters, kDeepseekPunctuation, kSpacesAtEnd, kCjk, kNumbers};
constexpr Step kDeepseekCoder[] = {kOneNewline, R"(\s?\p{L}+)", R"(\s?\p{P}+)", kCjk, kOneNumber};
constexpr Step kDeepseekV3[] = {kUpToThreeNumbers, kHanAndKana, kDeepseek3};
constexpr Step kSparkSteps[] = {kUpToThreeNumbers, kHanAndKana, kSpark, kOneNumber};
constexpr Step kAfmoe[] = {kNumberGroups, kAsianRuns, kDeepseek3};
constexpr Step kBloomSteps[] = {kBloom};
constexpr Step kViking[] = {kBloom, kOneNumber};
constexpr Step kExaoneMoeSteps[] = {kExaoneMoe};
constexpr Step kJais2Steps[] = {kJais2};
constexpr Step kKimiK2Steps[] = {kKimiK2};
constexpr Step kSuperBpe[] = {kNumbers, kDigitGroups};
constexpr Step kChameleon[] = {
    "<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", R"(([\t\n]|    |  ))", kOneNumber, R"([\p{P}!-/:-@\[-`{-~])", kGpt2Rules};
constexpr Step kLineSteps[] = {kLines};

constexpr PreTokenizerTraits kPlain{};
constexpr PreTokenizerTraits kWholeWords{.ignore_merges = true};
constexpr PreTokenizerTraits kWholeWordsAndBos{.ignore_merges = true, .add_bos = true};
constexpr PreTokenizerTraits kBos{.add_bos = true};
constexpr PreTokenizerTraits kCharacters{.byte_level = false};
constexpr PreTokenizerTraits kGemma4{.add_bos = true, .byte_level = false, .newline_runs_whole = true};

constexpr NamedPreTokenizer kNames[] = {
    {"default", kDefault, kPlain},
    {"falcon", kFalcon, kPlain},
    {"gpt-2", kGpt2Steps, kPlain},
    {"phi-2", kGpt2Steps, kPlain},
    {"jina-es", kGpt2Steps, kPlain},
    {"jina-de", kGpt2Steps, kPlain},
    {"gigachat", kGpt2Steps, kPlain},
    {"jina-v2-es", kGpt2Steps, kPlain},
    {"jina-v2-de", kGpt2Steps, kPlain},
    {"a.x-4.0", kGpt2Steps, kPlain},
    {"mellum", kGpt2Steps, kPlain},
    {"modern-bert", kGpt2Steps, kPlain},
    {"jina-v1-en", kGpt2Steps, kPlain},
    {"jina-v2-code", kGpt2Steps, kPlain},
    {"roberta-bpe", kGpt2Steps, kPlain},
    {"exaone4", kGpt2Steps, kPlain},
    {"mpt", kGpt2Steps, kPlain},
    {"olmo", kGpt2Steps, kPlain},
    {"jais", kGpt2Steps, kPlain},
    {"trillion", kGpt2Steps, kPlain},
    {"granite-docling", kGpt2Steps, kPlain},
    {"starcoder", kSingleDigits, kPlain},
    {"refact", kSingleDigits, kPlain},
    {"command-r", kSingleDigits, kPlain},
    {"smollm", kSingleDigits, kPlain},
    {"codeshell", kSingleDigits, kPlain},
    {"exaone", kSingleDigits, kPlain},
    {"minerva-7b", kSingleDigits, kPlain},
    {"mellum2", kSingleDigits, kPlain},
    {"llama3", kLlama3, kWholeWordsAndBos},
    {"llama-v3", kLlama3, kWholeWordsAndBos},
    {"llama-bpe", kLlama3, kWholeWordsAndBos},
    {"falcon3", kLlama3, kWholeWordsAndBos},
    {"falcon-h1", kLlama3, kWholeWordsAndBos},
    {"pixtral", kLlama3, kWholeWordsAndBos},
    {"midm-2.0", kLlama3, kWholeWordsAndBos},
    {"lfm2", kLlama3, kWholeWordsAndBos},
    {"jina-v5-nano", kLlama3, kWholeWordsAndBos},
    {"dbrx", kLlama3, kPlain},
    {"smaug-bpe", kLlama3, kPlain},
    {"chatglm-bpe", kLlama3, kPlain},
    {"glm4", kLlama3, kWholeWords},
    {"glm5", kLlama3, kWholeWords},
    {"qwen2", kQwen2, kPlain},
    {"deepseek-r1-qwen", kQwen2, kPlain},
    {"kormo", kQwen2, kPlain},
    {"f2llmv2", kQwen2, kPlain},
    {"megrez", kQwen2, kPlain},
    {"stablelm2", kQwen2, kPlain},
    {"hunyuan", kQwen2, kPlain},
    {"solar-open", kQwen2, kPlain},
    {"grok-2", kQwen2, kPlain},
    {"bailingmoe", kQwen2, kPlain},
    {"bailingmoe2", kQwen2, kPlain},
    {"llada-moe", kQwen2, kPlain},
    {"qwen35", kQwen35, kPlain},
    {"seed-coder", kSeedCoder, kPlain},
    {"ufakzeka", kUfakzeka, kPlain},
    {"laguna", kLaguna, kPlain},
    {"minicpm5", kMiniCpm5, kWholeWords},
    {"gpt-4o", kGpt4o, kPlain},
    {"llama4", kGpt4o, kPlain},
    {"kanana2", kGpt4o, kPlain},
    {"talkie", kGpt4o, kPlain},
    {"minimax-m2", kGpt4o, kPlain},
    {"granite-embed-multi-97m", kGpt4o, kWholeWords},
    {"tekken", kTekken, kWholeWordsAndBos},
    {"tiny_aya", kTinyAya, kPlain},
    {"cohere2moe", kTinyAya, kPlain},
    {"youtu", kYoutu, kWholeWords},
    {"deepseek-llm", kDeepseekLlm, kPlain},
    {"deepseek-coder", kDeepseekCoder, kPlain},
    {"deepseek-v3", kDeepseekV3, kPlain},
    {"hunyuan-dense", kDeepseekV3, kPlain},
    {"joyai-llm", kDeepseekV3, kPlain},
    {"hy_v4", kDeepseekV3, kPlain},
    {"spark2_5", kSparkSteps, kPlain},
    {"afmoe", kAfmoe, kPlain},
    {"poro-chat", kBloomSteps, kPlain},
    {"bloom", kBloomSteps, kPlain},
    {"gpt3-finnish", kBloomSteps, kPlain},
    {"viking", kViking, kPlain},
    {"exaone-moe", kExaoneMoeSteps, kPlain},
    {"jais-2", kJais2Steps, kPlain},
    {"kimi-k2", kKimiK2Steps, kPlain},
    {"superbpe", kSuperBpe, kPlain},
    {"chameleon", kChameleon, kBos},
    {"gemma4", kLineSteps, kGemma4},
    {"granite-embed-multi-311m", kLineSteps, kGemma4},
    {"sarvam-moe", kLineSteps, kCharacters},
};

}  // namespace

std::span<const NamedPreTokenizer> named_pre_tokenizers() { return kNames; }

const NamedPreTokenizer* find_pre_tokenizer(std::string_view name) {
  const auto* found = std::ranges::find(kNames, name, &NamedPreTokenizer::name);
  return found == std::end(kNames) ? nullptr : found;
}

}  // namespace weir::tokenizer
