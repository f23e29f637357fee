#include "text/chat/parser.h"

#include <algorithm>
#include <initializer_list>

#include "text/chat/expression_parser.h"

namespace transept::jinja {
namespace {

using StatementPtr = std::unique_ptr<Statement>;

class Parser final {
 public:
  Parser(TokenStream& tokens, Heap& constants)
      : tokens_(tokens), constants_(constants), expressions_(tokens, constants) {}

  // Statements up to "{% END", one of the ends, which stands before its name. No ends: up to the end of the template.
  StatusOr<Body> body(std::initializer_list<std::string_view> ends) {
    const Level level(expressions_.depth());
    RETURN_IF_ERROR(expressions_.check_depth(expressions_.depth(), tokens_.line()));
    Body statements;
    while (!tokens_.at(TokenKind::kEnd)) {
      if (tokens_.at(TokenKind::kBlockBegin)) {
        tokens_.next();
        if (std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return tokens_.at_name(end); })) {
          return statements;
        }
        ASSIGN_OR_RETURN(statements.emplace_back(), statement());
        RETURN_IF_ERROR(tokens_.expect(TokenKind::kBlockEnd, "%}"));
      } else {
        ASSIGN_OR_RETURN(statements.emplace_back(), output());
      }
    }
    if (ends.size() > 0) return tokens_.unexpected(in_quotes(*ends.begin()));
    return statements;
  }

 private:
  // "%}", statements, and "{% END": past END.
  StatusOr<Body> block(std::string_view end) {
    ASSIGN_OR_RETURN(Body statements, block_before({end}));
    tokens_.next();
    return statements;
  }
  StatusOr<Body> block_before(std::initializer_list<std::string_view> ends) {
    tokens_.skip_operator(":");
    RETURN_IF_ERROR(tokens_.expect(TokenKind::kBlockEnd, "%}"));
    return body(ends);
  }

  StatementPtr make(StatementKind kind) const {
    auto statement = std::make_unique<Statement>();
    statement->kind = kind;
    statement->line = tokens_.line();
    return statement;
  }

  StatusOr<StatementPtr> output() {
    StatementPtr made = make(StatementKind::kOutput);
    while (tokens_.at(TokenKind::kData) || tokens_.at(TokenKind::kOutputBegin)) {
      const Token& token = tokens_.next();
      if (token.kind == TokenKind::kData) {
        auto data = std::make_unique<Expr>();
        data->line = token.line;
        data->constant = constants_.text(token.text);
        made->exprs.push_back(std::move(data));
      } else {
        ASSIGN_OR_RETURN(made->exprs.emplace_back(), expressions_.tuple(/*with_condition=*/true));
        RETURN_IF_ERROR(tokens_.expect(TokenKind::kOutputEnd, "}}"));
      }
    }
    if (made->exprs.empty()) return tokens_.unexpected("text or a tag");
    return made;
  }

  StatusOr<StatementPtr> statement() {
    struct Keyword {
      std::string_view name;
      StatusOr<StatementPtr> (Parser::*parse)();
    };
    constexpr Keyword kKeywords[] = {
        {"for", &Parser::for_loop},
        {"if", &Parser::if_block},
        {"print", &Parser::print},
        {"macro", &Parser::macro},
        {"set", &Parser::set},
        {"with", &Parser::with},
        {"call", &Parser::call_block},
        {"filter", &Parser::filter_block},
        {"break", &Parser::jump},
        {"continue", &Parser::jump},
        {"generation", &Parser::generation},
    };
    if (!tokens_.at(TokenKind::kName)) return tokens_.unexpected("the name of a statement");
    for (const Keyword& keyword : kKeywords) {
      if (tokens_.at_name(keyword.name)) return (this->*keyword.parse)();
    }
    for (const std::string_view name : {"block", "extends", "include", "import", "from", "autoescape"}) {
      if (tokens_.at_name(name)) return line_unsupported(tokens_.line(), "the statement ", in_quotes(name));
    }
    return line_error(tokens_.line(), "there is no statement ", tokens_.shown());
  }

  StatusOr<StatementPtr> for_loop() {
    StatementPtr made = make(StatementKind::kFor);
    tokens_.next();
    ASSIGN_OR_RETURN(made->target, expressions_.target(/*members=*/false, "in"));
    RETURN_IF_ERROR(tokens_.expect_name("in"));
    ASSIGN_OR_RETURN(made->value, expressions_.tuple(/*with_condition=*/false, "recursive"));
    if (tokens_.skip_name("if")) {
      ASSIGN_OR_RETURN(made->condition, expressions_.expression());
    }
    if (tokens_.at_name("recursive")) return line_unsupported(tokens_.line(), "a recursive loop");
    ASSIGN_OR_RETURN(made->body, block_before({"endfor", "else"}));
    if (tokens_.next().text == "else") {
      ASSIGN_OR_RETURN(made->else_body, block("endfor"));
      made->has_else = !made->else_body.empty();
    }
    return made;
  }

  StatusOr<StatementPtr> if_block() {
    StatementPtr made = make(StatementKind::kIf);
    tokens_.next();
    while (true) {
      ASSIGN_OR_RETURN(ExprPtr condition, expressions_.tuple(/*with_condition=*/false));
      ASSIGN_OR_RETURN(Body then, block_before({"elif", "else", "endif"}));
      made->branches.emplace_back(std::move(condition), std::move(then));
      const std::string& end = tokens_.next().text;
      if (end == "endif") return made;
      if (end == "else") break;
    }
    ASSIGN_OR_RETURN(made->else_body, block("endif"));
    return made;
  }

  StatusOr<StatementPtr> set() {
    StatementPtr made = make(StatementKind::kSet);
    tokens_.next();
    ASSIGN_OR_RETURN(made->target, expressions_.target(/*members=*/true));
    if (tokens_.skip_operator("=")) {
      ASSIGN_OR_RETURN(made->value, expressions_.tuple(/*with_condition=*/true));
      return made;
    }
    made->kind = StatementKind::kSetBlock;
    ASSIGN_OR_RETURN(made->value, expressions_.filters_of_body(/*begun=*/false));
    ASSIGN_OR_RETURN(made->body, block("endset"));
    return made;
  }

  StatusOr<StatementPtr> with() {
    StatementPtr made = make(StatementKind::kWith);
    tokens_.next();
    while (!tokens_.at(TokenKind::kBlockEnd)) {
      if (!made->exprs.empty()) RETURN_IF_ERROR(tokens_.expect_operator(","));
      ASSIGN_OR_RETURN(made->exprs.emplace_back(), expressions_.target(/*members=*/false));
      RETURN_IF_ERROR(tokens_.expect_operator("="));
      ASSIGN_OR_RETURN(made->exprs.emplace_back(), expressions_.expression());
    }
    ASSIGN_OR_RETURN(made->body, block("endwith"));
    return made;
  }

  StatusOr<StatementPtr> print() {
    StatementPtr made = make(StatementKind::kOutput);
    tokens_.next();
    while (!tokens_.at(TokenKind::kBlockEnd)) {
      if (!made->exprs.empty()) RETURN_IF_ERROR(tokens_.expect_operator(","));
      ASSIGN_OR_RETURN(made->exprs.emplace_back(), expressions_.expression());
    }
    return made;
  }

  Status signature(MacroDefinition& macro) {
    RETURN_IF_ERROR(tokens_.expect_operator("("));
    while (!tokens_.at_operator(")")) {
      if (!macro.parameters.empty()) RETURN_IF_ERROR(tokens_.expect_operator(","));
      const int line = tokens_.line();
      ASSIGN_OR_RETURN(ExprPtr parameter, name());
      for (const ExprPtr& other : macro.parameters) {
        if (other->name == parameter->name) return line_error(line, "two parameters ", in_quotes(parameter->name));
      }
      macro.parameters.push_back(std::move(parameter));
      if (tokens_.skip_operator("=")) {
        ASSIGN_OR_RETURN(macro.defaults.emplace_back(), expressions_.expression());
      } else if (!macro.defaults.empty()) {
        return line_error(line, "a parameter without a default follows one with a default");
      }
    }
    return tokens_.expect_operator(")");
  }

  // A name that is assigned to.
  StatusOr<ExprPtr> name() {
    auto made = std::make_unique<Expr>();
    made->kind = ExprKind::kName;
    made->line = tokens_.line();
    ASSIGN_OR_RETURN(made->name, tokens_.expect_any_name());
    for (const std::string_view constant : {"true", "false", "none", "True", "False", "None"}) {
      if (made->name == constant) return line_error(made->line, in_quotes(constant), " cannot be assigned to");
    }
    return made;
  }

  StatusOr<StatementPtr> macro() {
    StatementPtr made = make(StatementKind::kMacro);
    tokens_.next();
    ASSIGN_OR_RETURN(made->target, name());
    made->macro.name = made->target->name;
    RETURN_IF_ERROR(signature(made->macro));
    ASSIGN_OR_RETURN(made->macro.body, block("endmacro"));
    return made;
  }

  StatusOr<StatementPtr> call_block() {
    StatementPtr made = make(StatementKind::kCallBlock);
    tokens_.next();
    if (tokens_.at_operator("(")) RETURN_IF_ERROR(signature(made->macro));
    ASSIGN_OR_RETURN(made->value, expressions_.expression());
    if (made->value->kind != ExprKind::kCall) return line_error(made->line, "expected a call");
    ASSIGN_OR_RETURN(made->macro.body, block("endcall"));
    return made;
  }

  StatusOr<StatementPtr> generation() {
    StatementPtr made = make(StatementKind::kCallBlock);
    tokens_.next();
    ASSIGN_OR_RETURN(made->macro.body, block("endgeneration"));
    return made;
  }

  StatusOr<StatementPtr> filter_block() {
    StatementPtr made = make(StatementKind::kFilterBlock);
    tokens_.next();
    ASSIGN_OR_RETURN(made->value, expressions_.filters_of_body(/*begun=*/true));
    ASSIGN_OR_RETURN(made->body, block("endfilter"));
    return made;
  }

  StatusOr<StatementPtr> jump() {
    return make(tokens_.next().text == "break" ? StatementKind::kBreak : StatementKind::kContinue);
  }

  TokenStream& tokens_;
  Heap& constants_;
  ExpressionParser expressions_;
};

}  // namespace

Status parse_program(std::string_view source, Program& program) {
  ASSIGN_OR_RETURN(std::vector<Token> tokens, tokenize(source));
  TokenStream stream(std::move(tokens));
  ASSIGN_OR_RETURN(program.body, Parser(stream, program.constants).body({}));
  return ok_status();
}

}  // namespace transept::jinja
