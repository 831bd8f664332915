// Parser and writer of LIBSVM text.
//
// In: text, cut at line ends into one part per thread. Out: labels and CSR rows, joined in order. A hand-written
// scanner reads each line once, from left to right. A part ends at its first mistake, and joining ends with that part.
#include "text/libsvm.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "common/threads.hpp"
#include "text/decimal.hpp"

namespace isokern {
namespace {

constexpr std::size_t kLongestQuote = 40;                 // characters of input shown in an error
constexpr std::int64_t kPartSize = std::int64_t{1} << 18; // bytes of text for which another thread pays

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

// Text as shown in an error: truncated if long, and with bytes escaped that are not printable ASCII.
std::string quoted(std::string_view text) {
    static constexpr char kHex[] = "0123456789abcdef";
    std::string result = "\"";
    for (const char c : text.substr(0, kLongestQuote)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= ' ' && byte < 127)
            result += c;
        else
            result.append("\\x").append(1, kHex[byte / 16]).append(1, kHex[byte % 16]);
    }
    return result + (text.size() > kLongestQuote ? "...\"" : "\"");
}

// Thrown by LineReader: what is wrong with a line.
struct Mistake {
    std::string what;
};

// Parses lines and appends them to rows.
class LineReader {
  public:
    LineReader(LibsvmLimits limits, LibsvmRows &rows) : limits_(limits), rows_(rows) {}

    void read(const char *begin, const char *end) {
        at_ = begin;
        end_ = end;
        if (!find_token())
            return;
        const double label = read_label();
        std::int64_t before = limits_.first - 1;
        while (find_token())
            before = read_feature(before);
        rows_.labels.push_back(label);
        rows_.starts.push_back(static_cast<std::int64_t>(rows_.values.size()));
    }

  private:
    // Advances to the next token; false at the end of the line or at a comment.
    bool find_token() {
        while (at_ < end_ && is_blank(*at_))
            ++at_;
        return at_ < end_ && *at_ != '#';
    }

    bool is_token_end(const char *p) const { return p == end_ || is_blank(*p) || *p == '#'; }

    std::string_view token() const {
        const char *p = at_;
        while (!is_token_end(p))
            ++p;
        return {at_, static_cast<std::size_t>(p - at_)};
    }

    // Reads the label; NaN if it is unknown.
    double read_label() {
        double label = 0;
        const char *stop = read_decimal(at_, end_, label);
        if (stop && is_token_end(stop)) {
            at_ = stop;
            return label;
        }
        const std::string_view text = token();
        if (text != "?" && text != "nan" && text != "NaN")
            throw Mistake{"label must be a finite number, or ? if unknown; got " + quoted(text) + "."};
        at_ += text.size();
        return std::nan("");
    }

    // Reads `index:value` and returns the index, which must be larger than the one before. Capping the index avoids
    // overflow; the cap is above all valid indices.
    std::int64_t read_feature(std::int64_t before) {
        const char *p = at_;
        std::int64_t index = 0;
        for (; p < end_ && is_digit(*p); ++p)
            index = std::min<std::int64_t>(10 * index + (*p - '0'), std::int64_t{1} << 40);
        if (p == at_ || p == end_ || *p != ':')
            return pass_query_or_fail(before);
        if (index <= before || index > limits_.last)
            throw Mistake{wrong_index(index, before)};
        double value = 0;
        const char *stop = read_decimal(p + 1, end_, value);
        if (!stop || !is_token_end(stop))
            throw Mistake{"value must be a finite number; got " + quoted(token()) + "."};
        if (std::abs(value) > limits_.largest)
            throw Mistake{"value must fit the dtype; got " + quoted(token()) + "."};
        rows_.columns.push_back(static_cast<std::int32_t>(index - limits_.first));
        rows_.values.push_back(value);
        at_ = stop;
        return index;
    }

    // Skips a "qid:" entry; any other token that is not `index:value` is a mistake.
    std::int64_t pass_query_or_fail(std::int64_t before) {
        const std::string_view text = token();
        if (!text.starts_with("qid:"))
            throw Mistake{"feature must be written index:value; got " + quoted(text) + "."};
        at_ += text.size();
        return before;
    }

    std::string wrong_index(std::int64_t index, std::int64_t before) const {
        const std::string text(token().substr(0, token().find(':')));
        const std::string start = "feature index " + (text.size() > kLongestQuote ? quoted(text) : text) + " must be ";
        if (index < limits_.first)
            return start + "at least " + std::to_string(limits_.first) + ".";
        if (index > limits_.last)
            return start + "at most " + std::to_string(limits_.last) + ".";
        return start + "larger than the one before it, " + std::to_string(before) + ".";
    }

    LibsvmLimits limits_;
    LibsvmRows &rows_;
    const char *at_ = nullptr;
    const char *end_ = nullptr;
};

// Reads lines until the end of the text or the first mistake.
LibsvmRows read_part(std::string_view text, LibsvmLimits limits) {
    LibsvmRows rows;
    LineReader reader(limits, rows);
    const char *at = text.data(), *const end = at + text.size();
    try {
        while (at < end) {
            ++rows.n_lines;
            const auto *newline = static_cast<const char *>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
            reader.read(at, newline ? newline : end);
            at = newline ? newline + 1 : end;
        }
    } catch (const Mistake &mistake) {
        rows.mistake = mistake.what;
    }
    return rows;
}

// Cuts text at line ends into at most n parts of about equal size.
std::vector<std::string_view> cut(std::string_view text, std::size_t n) {
    std::vector<std::string_view> parts;
    for (std::size_t begin = 0, k = 1; begin < text.size(); ++k) {
        const std::size_t newline = k < n ? text.find('\n', std::max(begin, text.size() / n * k)) : text.npos;
        const std::size_t end = newline == text.npos ? text.size() : newline + 1;
        parts.push_back(text.substr(begin, end - begin));
        begin = end;
    }
    return parts;
}

template <class T> void append(std::vector<T> &to, const std::vector<T> &from) {
    to.insert(to.end(), from.begin(), from.end());
}

// Concatenates the parts, up to the first that has a mistake; its rows before the mistake are kept.
LibsvmRows joined(std::vector<LibsvmRows> parts) {
    LibsvmRows rows;
    for (LibsvmRows &part : parts) {
        const std::int64_t offset = rows.starts.back();
        std::transform(part.starts.begin() + 1, part.starts.end(), std::back_inserter(rows.starts),
                       [&](std::int64_t start) { return offset + start; });
        append(rows.labels, part.labels);
        append(rows.values, part.values);
        append(rows.columns, part.columns);
        rows.n_lines += part.n_lines;
        rows.mistake = part.mistake;
        if (!rows.mistake.empty())
            break;
    }
    return rows;
}

// Appends the shortest decimal number that reads as the same double.
void append_number(std::string &text, double value) {
    char digits[32];
    const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
    text.append(digits, end);
}

} // namespace

LibsvmRows read_libsvm(std::string_view text, LibsvmLimits limits, int threads) {
    const auto size = static_cast<std::int64_t>(text.size());
    const auto n_parts = std::min<std::int64_t>(usable_threads(threads), size / kPartSize + 1);
    if (n_parts == 1)
        return read_part(text, limits);
    const std::vector<std::string_view> parts = cut(text, static_cast<std::size_t>(n_parts));
    std::vector<LibsvmRows> rows(parts.size());
    parallel_tiles(static_cast<std::int64_t>(parts.size()), 1, threads, [&] {
        return [&](std::int64_t begin, std::int64_t) {
            const auto k = static_cast<std::size_t>(begin);
            rows[k] = read_part(parts[k], limits);
        };
    });
    return joined(std::move(rows));
}

std::string write_libsvm(const double *labels, const double *values, const std::int32_t *columns,
                         const std::int64_t *starts, std::int64_t n_rows, std::int64_t first) {
    std::string text;
    for (std::int64_t i = 0; i < n_rows; ++i) {
        if (std::isnan(labels[i]))
            text += '?';
        else
            append_number(text, labels[i]);
        for (std::int64_t k = starts[i]; k < starts[i + 1]; ++k) {
            text += ' ';
            text += std::to_string(columns[k] + first);
            text += ':';
            append_number(text, values[k]);
        }
        text += '\n';
    }
    return text;
}

} // namespace isokern
