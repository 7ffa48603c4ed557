/* A stand-in for pyxis, for tests on machines without enroot: it takes pyxis's options on srun and runs the task in a
 * mount namespace whose root is the folder that --container-image names, with --container-mounts bound into it.
 * What it does not do: import images (the image must be a folder), user namespaces, hooks, entry points.
 *
 *   gcc -shared -fPIC -O2 -Wall -o pyxis_standin.so pyxis_standin.c      (needs slurm/spank.h, Debian: libslurm-dev)
 *   plugstack.conf: required /path/pyxis_standin.so
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <slurm/spank.h>

SPANK_PLUGIN(pyxis_standin, 1)

enum { IMAGE, MOUNTS, WORKDIR, IGNORED };
static char *given[IGNORED];

static int take(int which, const char *value, int remote)
{
	(void)remote;
	if (which < IGNORED) {
		free(given[which]);
		given[which] = strdup(value ? value : "");
	}
	return 0;
}

static struct spank_option options[] = {
	{"container-image", "FOLDER", "[stand-in for pyxis] root folder of the task", 1, IMAGE, take},
	{"container-mounts", "SRC:DST[:FLAGS],...", "[stand-in for pyxis] bind mounts", 1, MOUNTS, take},
	{"container-workdir", "PATH", "[stand-in for pyxis] working folder inside", 1, WORKDIR, take},
	{"container-name", "NAME", "[stand-in for pyxis] ignored", 1, IGNORED, take},
	{"container-env", "NAME,...", "[stand-in for pyxis] ignored", 1, IGNORED, take},
	{"container-mount-home", NULL, "[stand-in for pyxis] ignored", 0, IGNORED, take},
	{"no-container-mount-home", NULL, "[stand-in for pyxis] ignored", 0, IGNORED, take},
	{"container-remap-root", NULL, "[stand-in for pyxis] ignored", 0, IGNORED, take},
	{"no-container-remap-root", NULL, "[stand-in for pyxis] ignored", 0, IGNORED, take},
	{"container-writable", NULL, "[stand-in for pyxis] ignored", 0, IGNORED, take},
	{"container-readonly", NULL, "[stand-in for pyxis] ignored", 0, IGNORED, take},
	{"container-entrypoint", NULL, "[stand-in for pyxis] ignored", 0, IGNORED, take},
	{"no-container-entrypoint", NULL, "[stand-in for pyxis] ignored", 0, IGNORED, take},
	SPANK_OPTIONS_TABLE_END,
};

int slurm_spank_init(spank_t spank, int argc, char **argv)
{
	(void)argc, (void)argv;
	for (struct spank_option *option = options; option->name; option++)
		if (spank_option_register(spank, option) != ESPANK_SUCCESS)
			return -1;
	return 0;
}

static int refuse(const char *what, const char *path)
{
	slurm_error("pyxis: %s %s: %s", what, path, strerror(errno));
	return -1;
}

static void make_parents(char *path, size_t from)
{
	for (char *slash = strchr(path + from + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
}

static int bind_path(const char *root, const char *source, const char *inside, int read_only)
{
	char target[4096];
	struct stat kind;
	if (stat(source, &kind))
		return refuse("couldn't mount", source);
	snprintf(target, sizeof target, "%s%s", root, inside);
	make_parents(target, strlen(root));
	if (S_ISDIR(kind.st_mode))
		mkdir(target, 0755);
	else
		close(open(target, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	if (mount(source, target, NULL, MS_BIND | MS_REC, NULL))
		return refuse("couldn't mount on", target);
	if (read_only && mount(NULL, target, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL))
		return refuse("couldn't make read-only", target);
	return 0;
}

static int bind_wanted(const char *root, const char *list)
{
	char *copy = strdup(list), *rest = copy;
	int failed = 0;
	for (char *item; !failed && (item = strsep(&rest, ","));) {
		char *source = strsep(&item, ":"), *inside = strsep(&item, ":"), *flags = strsep(&item, ":");
		if (*source)
			failed = bind_path(root, source, inside ? inside : source, flags && strstr(flags, "ro"));
	}
	free(copy);
	return failed;
}

/* Runs in the task's process, as root, before it becomes the user. */
int slurm_spank_task_init_privileged(spank_t spank, int argc, char **argv)
{
	static const char *const always[] = {"/proc", "/sys", "/dev"};
	const char *root = given[IMAGE];
	struct stat kind;
	(void)spank, (void)argc, (void)argv;
	if (!root)
		return 0;
	if (stat(root, &kind))
		return refuse("failed to import", root);
	if (!S_ISDIR(kind.st_mode)) {
		errno = ENOTDIR;
		return refuse("failed to import", root);
	}
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return refuse("no mount namespace for", root);
	for (size_t i = 0; i < sizeof always / sizeof *always; i++)
		if (bind_path(root, always[i], always[i], 0))
			return -1;
	if (given[MOUNTS] && bind_wanted(root, given[MOUNTS]))
		return -1;
	char scratch[4096];
	snprintf(scratch, sizeof scratch, "%s/tmp", root);
	mkdir(scratch, 01777); /* slurmstepd goes there when the job's own folder is not inside */
	return chroot(root) || chdir("/") ? refuse("couldn't enter", root) : 0;
}

/* The step changes to the job's own folder in between, so the working folder is set here. */
int slurm_spank_task_init(spank_t spank, int argc, char **argv)
{
	const char *folder = given[WORKDIR] ? given[WORKDIR] : "/";
	(void)spank, (void)argc, (void)argv;
	if (!given[IMAGE])
		return 0;
	return chdir(folder) ? refuse("couldn't start in", folder) : 0;
}
