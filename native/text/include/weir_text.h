// SPDX-License-Identifier: Apache-2.0
// What the Rust library of native/text offers to C and C++: chat templates. Every call returns a code; no panic, exception
// or abort crosses this border. Texts are UTF-8 with a length; those handed out are freed with weir_text_free.
#ifndef WEIR_TEXT_H
#define WEIR_TEXT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  WEIR_TEXT_OK = 0,
  WEIR_TEXT_SYNTAX = 1,       // the template does not parse
  WEIR_TEXT_RAISED = 2,       // the template called raise_exception; the text is its message
  WEIR_TEXT_FAILED = 3,       // an expression of the template failed
  WEIR_TEXT_UNSUPPORTED = 4,  // a filter, test, function or method that does not exist here
  WEIR_TEXT_LIMIT = 5,        // too much work, nesting or output
  WEIR_TEXT_BAD_INPUT = 6,    // an argument is not UTF-8 or not a JSON object
  WEIR_TEXT_PANIC = 7         // a fault of the library, contained
} weir_text_code;

typedef struct {
  char* data;  // not terminated; NULL when empty
  size_t size;
} weir_text;

typedef struct weir_template weir_template;  // immutable once compiled: threads may share it

// On success *result is set, otherwise *error. `name` stands in error messages.
weir_text_code weir_template_compile(const char* source, size_t source_size, const char* name, size_t name_size, weir_template** result,
                                     weir_text* error);

// `context` is a JSON object. `unix_seconds` is what strftime_now reads. *text is the rendered text or the error's message.
weir_text_code weir_template_render(const weir_template* compiled, const char* context, size_t context_size, int64_t unix_seconds,
                                    weir_text* text);

void weir_template_free(weir_template* compiled);  // NULL is allowed
void weir_text_free(weir_text text);

#ifdef __cplusplus
}
#endif
#endif
