/* SPDX-License-Identifier: BSD-3-Clause */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static int64_t clock_ns(void) {
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

_Noreturn static void run_child(const char *const *argv, int out, int err) {
	char path[4096];

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nothing behind */
	snprintf(path, sizeof(path), "%s/%s", getenv("IXDP_PROGRAMS"), argv[0]);
	if (out < 0)
		close(STDOUT_FILENO);
	else
		dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	execv(path, (char *const *)argv);
	dprintf(STDERR_FILENO, "%s: %s\n", path, strerror(errno));
	_exit(127);
}

static void start(struct program *program, const char *const *argv, bool mute) {
	int out[2], err[2];

	assert_non_null(getenv("IXDP_PROGRAMS"));
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(err, O_CLOEXEC), 0);
	*program = (struct program){
	    .out = {.data = strdup(""), .fd = out[0]},
	    .err = {.data = strdup(""), .fd = err[0]},
	    .limit_ns = clock_ns() + PROGRAM_LIMIT_S * INT64_C(1000000000),
	};
	program->pid = fork();
	assert_true(program->pid >= 0);
	if (!program->pid) run_child(argv, mute ? -1 : out[1], err[1]);
	close(out[1]);
	close(err[1]);
}

void program_start(struct program *program, const char *const *argv) {
	start(program, argv, false);
}

void program_start_mute(struct program *program, const char *const *argv) {
	start(program, argv, true);
}

static void read_more(struct program_text *text) {
	char piece[4096];
	const ssize_t n = read(text->fd, piece, sizeof(piece));

	if (n <= 0) {
		close(text->fd);
		text->fd = -1;
		return;
	}
	text->data = realloc(text->data, text->len + n + 1);
	assert_non_null(text->data);
	memcpy(text->data + text->len, piece, n);
	text->len += n;
	text->data[text->len] = '\0';
}

/* Waits for output and takes it in. False: there will be none any more. */
static bool take_output(struct program *program) {
	struct program_text *texts[] = {&program->out, &program->err};
	struct pollfd fds[2];
	const int64_t left_ns = program->limit_ns - clock_ns();

	if (program->out.fd < 0 && program->err.fd < 0) return false;
	for (unsigned i = 0; i < 2; i++)
		fds[i] = (struct pollfd){.fd = texts[i]->fd, .events = POLLIN};
	if (left_ns <= 0 || poll(fds, 2, (int)(left_ns / 1000000) + 1) <= 0) {
		kill(program->pid, SIGKILL);
		fail_msg("takes longer than %d s; stderr: %s", PROGRAM_LIMIT_S, program->err.data);
	}
	for (unsigned i = 0; i < 2; i++) {
		if (fds[i].revents) read_more(texts[i]);
	}
	return true;
}

const char *program_line(struct program *program) {
	const char *end;

	while (!(end = strchr(program->out.data + program->read, '\n'))) {
		if (!take_output(program)) return NULL;
	}
	const char *begin = program->out.data + program->read;

	free(program->line);
	program->line = strndup(begin, end - begin);
	program->read = end + 1 - program->out.data;
	return program->line;
}

void program_wait_stderr(struct program *program, const char *text) {
	while (!strstr(program->err.data, text)) {
		if (!take_output(program))
			fail_msg("stderr lacks \"%s\": %s", text, program->err.data);
	}
}

void program_hang_up(struct program *program) {
	close(program->out.fd);
	program->out.fd = -1;
}

bool program_has_ended(const struct program *program) {
	siginfo_t info = {0};

	waitid(P_PID, (id_t)program->pid, &info, WEXITED | WNOHANG | WNOWAIT);
	return info.si_pid == program->pid;
}

int program_wait(struct program *program) {
	int status;

	while (take_output(program))
		;
	assert_int_equal(waitpid(program->pid, &status, 0), program->pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

struct json_object *program_objects(struct program *program) {
	const char *line;

	if (program->objects) return program->objects;
	program->objects = json_object_new_array();
	program->read = 0;
	while ((line = program_line(program))) {
		struct json_object *object = json_tokener_parse(line);

		if (!json_object_is_type(object, json_type_object))
			fail_msg("not a JSON object: %s", line);
		json_object_array_add(program->objects, object);
	}
	if (program->out.data[program->read])
		fail_msg("an unfinished line: %s", program->out.data + program->read);
	return program->objects;
}

struct json_object *program_final(struct program *program, const char *port) {
	struct json_object *objects = program_objects(program), *last = NULL, *member;

	for (size_t i = 0; i < json_object_array_length(objects); i++) {
		struct json_object *object = json_object_array_get_idx(objects, i);

		if (json_object_object_get_ex(object, "port", &member) &&
		    !strcmp(json_object_get_string(member), port))
			last = object;
	}
	if (!last) fail_msg("nothing about %s; stderr: %s", port, program->err.data);
	assert_true(json_object_object_get_ex(last, "final", &member));
	assert_true(json_object_get_boolean(member));
	return last;
}

unsigned program_lines(const struct program_text *text) {
	unsigned lines = 0;

	for (const char *at = text->data; (at = strchr(at, '\n')); at++)
		lines++;
	return lines;
}

unsigned program_error_lines(const struct program *program) {
	unsigned lines = program_lines(&program->err);

	for (const char *at = program->err.data; (at = strstr(at, ": warning: ")); at++)
		lines--;
	return lines;
}

void program_free(struct program *program) {
	if (program->out.fd >= 0) close(program->out.fd);
	if (program->err.fd >= 0) close(program->err.fd);
	free(program->out.data);
	free(program->err.data);
	free(program->line);
	json_object_put(program->objects);
}

static struct json_object *member(struct json_object *object, const char *name) {
	struct json_object *value;

	if (!json_object_object_get_ex(object, name, &value))
		fail_msg("no \"%s\" in %s", name, json_object_to_json_string(object));
	return value;
}

int64_t json_int(struct json_object *object, const char *name) {
	struct json_object *value = member(object, name);

	assert_true(json_object_is_type(value, json_type_int));
	return json_object_get_int64(value);
}

double json_number(struct json_object *object, const char *name) {
	struct json_object *value = member(object, name);

	assert_true(json_object_is_type(value, json_type_double));
	return json_object_get_double(value);
}
