/* A stand-in for libnvidia-ml.so.1, for tests that run the agent as processes of its own.
 *
 * FAKE_NVML_FILE names a text file (compiled.py writes it from a profile), read at nvmlInit; one statement a line:
 *   driver V | nvml V | cuda N | init CODE
 *   gpu UUID BUS NAME            begins a GPU; the lines below are about it
 *   mig UUID GPU_INSTANCE NAME   begins a MIG instance of the GPU above
 *   set KEY VALUE                a value; what is not set answers "not supported"
 *   rate KEY PER_SECOND          that value grows
 *   process PID BYTES
 * FAKE_NVML_CONTROL names a file that may change at any time; one statement a line:
 *   CODE FUNCTION UUID|*         the function answers with that code
 *   hang FUNCTION *              it never returns, and no signal but SIGKILL ends it
 *   crash FUNCTION *             it reads through a null pointer
 *   xid N UUID                   one event, delivered once for each line ever seen
 * Structure layouts and numbers are those of nvml.h. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OK = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, TIMED_OUT = 10 };
enum { MOST_DEVICES = 64, MOST_VALUES = 64, MOST_PROCESSES = 16, MOST_RULES = 32 };

typedef struct { char key[32]; double value, rate; } value_t;
typedef struct { unsigned pid; unsigned long long bytes; } process_t;
typedef struct device {
    char uuid[80], bus[32], name[96];
    int parent; /* index of the GPU, or -1 */
    value_t values[MOST_VALUES];
    int value_count;
    process_t processes[MOST_PROCESSES];
    int process_count;
} device_t;
typedef struct { char action[16], function[64], uuid[80]; } rule_t;

static device_t devices[MOST_DEVICES];
static int device_count;
static char driver[80] = "0", library[80] = "0";
static int cuda, init_code;
static struct timespec began;
static int xids_delivered;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - began.tv_sec) + (double)(now.tv_nsec - began.tv_nsec) / 1e9;
}

static value_t *find(const device_t *device, const char *key) {
    for (int place = 0; place < device->value_count; place++)
        if (!strcmp(device->values[place].key, key))
            return (value_t *)&device->values[place];
    return NULL;
}

static int number(const device_t *device, const char *key, double *out) {
    const value_t *value = find(device, key);
    if (!value)
        return NOT_SUPPORTED;
    *out = value->value + value->rate * seconds();
    return OK;
}

static void take_line(const char *line) {
    char key[80], rest[160] = "", name[96] = "";
    double amount = 0;
    device_t *device = device_count ? &devices[device_count - 1] : NULL;
    if (sscanf(line, "driver %79s", driver) == 1 || sscanf(line, "nvml %79s", library) == 1 ||
        sscanf(line, "cuda %d", &cuda) == 1 || sscanf(line, "init %d", &init_code) == 1)
        return;
    int is_mig = !strncmp(line, "mig ", 4);
    if ((is_mig || !strncmp(line, "gpu ", 4)) && device_count < MOST_DEVICES &&
        sscanf(line + 4, "%79s %31s %95[^\n]", key, rest, name) == 3) {
        int parent = device_count - 1;
        while (is_mig && parent > 0 && devices[parent].parent >= 0)
            parent--;
        device = &devices[device_count++];
        memset(device, 0, sizeof *device);
        strcpy(device->uuid, key);
        strcpy(device->name, name);
        device->parent = is_mig ? parent : -1;
        if (!is_mig) {
            strcpy(device->bus, rest);
        } else {
            strcpy(device->values[0].key, "gpu_instance");
            device->values[0].value = atof(rest);
            device->value_count = 1;
        }
    } else if (device && sscanf(line, "set %31s %lf", key, &amount) == 2 && device->value_count < MOST_VALUES) {
        strcpy(device->values[device->value_count].key, key);
        device->values[device->value_count++].value = amount;
    } else if (device && sscanf(line, "rate %31s %lf", key, &amount) == 2 && find(device, key)) {
        find(device, key)->rate = amount;
    } else if (device && device->process_count < MOST_PROCESSES) {
        process_t *process = &device->processes[device->process_count];
        if (sscanf(line, "process %u %llu", &process->pid, &process->bytes) == 2)
            device->process_count++;
    }
}

static void read_profile(void) {
    const char *path = getenv("FAKE_NVML_FILE");
    FILE *file = path ? fopen(path, "re") : NULL;
    char line[256];
    device_count = 0;
    clock_gettime(CLOCK_MONOTONIC, &began);
    while (file && fgets(line, sizeof line, file))
        take_line(line);
    if (file)
        fclose(file);
}

static int read_rules(rule_t *rules) {
    const char *path = getenv("FAKE_NVML_CONTROL");
    FILE *file = path ? fopen(path, "re") : NULL;
    int count = 0;
    while (file && count < MOST_RULES &&
           fscanf(file, "%15s %63s %79s", rules[count].action, rules[count].function, rules[count].uuid) == 3)
        count++;
    if (file)
        fclose(file);
    return count;
}

static void hang_for_good(void) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    for (;;)
        pause();
}

/* What the control file says of this function, for this device or all. */
static int interfere(const char *function, const device_t *device) {
    rule_t rules[MOST_RULES];
    int count = read_rules(rules);
    for (int place = 0; place < count; place++) {
        const rule_t *rule = &rules[place];
        if (strcmp(rule->function, function) || (strcmp(rule->uuid, "*") && (!device || strcmp(rule->uuid, device->uuid))))
            continue;
        if (!strcmp(rule->action, "hang"))
            hang_for_good();
        if (!strcmp(rule->action, "crash"))
            *(volatile int *)NULL = 1;
        if (atoi(rule->action))
            return atoi(rule->action);
    }
    return OK;
}

#define ENTER(device)                                      \
    do {                                                   \
        int code_ = interfere(__func__, (device));         \
        if (code_)                                         \
            return code_;                                  \
    } while (0)

#define READ(device, key, out)                             \
    do {                                                   \
        double read_ = 0;                                  \
        int code_ = number((device), (key), &read_);       \
        if (code_)                                         \
            return code_;                                  \
        *(out) = read_;                                    \
    } while (0)

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    read_profile();
    ENTER(NULL);
    return init_code;
}
int nvmlShutdown(void) { ENTER(NULL); return OK; }
const char *nvmlErrorString(int code) { (void)code; return "an error"; }

static int text(char *out, unsigned size, const char *from) {
    snprintf(out, size, "%s", from);
    return OK;
}
int nvmlSystemGetDriverVersion(char *out, unsigned size) { ENTER(NULL); return text(out, size, driver); }
int nvmlSystemGetNVMLVersion(char *out, unsigned size) { ENTER(NULL); return text(out, size, library); }
int nvmlSystemGetCudaDriverVersion_v2(int *out) { ENTER(NULL); *out = cuda; return OK; }

int nvmlDeviceGetCount_v2(unsigned *out) {
    ENTER(NULL);
    *out = 0;
    for (int place = 0; place < device_count; place++)
        *out += devices[place].parent < 0;
    return OK;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t **out) {
    for (int place = 0; place < device_count; place++) {
        if (devices[place].parent < 0 && index-- == 0) {
            ENTER(&devices[place]);
            *out = &devices[place];
            return OK;
        }
    }
    return NOT_FOUND;
}
int nvmlDeviceGetName(device_t *device, char *out, unsigned size) { ENTER(device); return text(out, size, device->name); }
int nvmlDeviceGetUUID(device_t *device, char *out, unsigned size) { ENTER(device); return text(out, size, device->uuid); }

typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; } pci_t;
int nvmlDeviceGetPciInfo_v3(device_t *device, pci_t *out) { ENTER(device); return text(out->bus_id, sizeof out->bus_id, device->bus); }

int nvmlDeviceGetMigMode(device_t *device, unsigned *current, unsigned *pending) {
    ENTER(device);
    READ(device, "mig.mode", current);
    READ(device, "mig.mode", pending);
    return OK;
}
int nvmlDeviceGetMaxMigDeviceCount(device_t *device, unsigned *out) { ENTER(device); READ(device, "mig.places", out); return OK; }
int nvmlDeviceGetMigDeviceHandleByIndex(device_t *device, unsigned index, device_t **out) {
    ENTER(device);
    for (int place = 0; place < device_count; place++) {
        if (devices[place].parent == device - devices && index-- == 0) {
            *out = &devices[place];
            return OK;
        }
    }
    return NOT_FOUND;
}
int nvmlDeviceGetGpuInstanceId(device_t *device, unsigned *out) { ENTER(device); READ(device, "gpu_instance", out); return OK; }

int nvmlDeviceGetUtilizationRates(device_t *device, unsigned out[2]) {
    ENTER(device);
    READ(device, "utilization.gpu", &out[0]);
    READ(device, "utilization.memory", &out[1]);
    return OK;
}
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2_t;
int nvmlDeviceGetMemoryInfo_v2(device_t *device, memory_v2_t *out) {
    ENTER(device);
    READ(device, "memory.total", &out->total);
    READ(device, "memory.reserved", &out->reserved);
    READ(device, "memory.used", &out->used);
    out->free = out->total - out->reserved - out->used;
    return OK;
}
int nvmlDeviceGetMemoryInfo(device_t *device, unsigned long long out[3]) {
    ENTER(device);
    READ(device, "memory.total", &out[0]);
    READ(device, "memory.used", &out[2]);
    out[1] = out[0] - out[2];
    return OK;
}
int nvmlDeviceGetPowerUsage(device_t *device, unsigned *out) { ENTER(device); READ(device, "power_mw", out); return OK; }
int nvmlDeviceGetEnforcedPowerLimit(device_t *device, unsigned *out) { ENTER(device); READ(device, "power_limit_mw", out); return OK; }
int nvmlDeviceGetTotalEnergyConsumption(device_t *device, unsigned long long *out) { ENTER(device); READ(device, "energy_mj", out); return OK; }
int nvmlDeviceGetTemperature(device_t *device, unsigned sensor, unsigned *out) { ENTER(device); (void)sensor; READ(device, "temperature", out); return OK; }
int nvmlDeviceGetClockInfo(device_t *device, unsigned kind, unsigned *out) {
    ENTER(device);
    READ(device, kind == 1 ? "clock.sm" : "clock.memory", out);
    return OK;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(device_t *device, unsigned long long *out) { ENTER(device); READ(device, "throttle", out); return OK; }
int nvmlDeviceGetFanSpeed(device_t *device, unsigned *out) { ENTER(device); READ(device, "fan", out); return OK; }
int nvmlDeviceGetTotalEccErrors(device_t *device, unsigned kind, unsigned counter, unsigned long long *out) {
    ENTER(device);
    (void)counter;
    READ(device, kind ? "ecc.uncorrected" : "ecc.corrected", out);
    return OK;
}
int nvmlDeviceGetRemappedRows(device_t *device, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed) {
    ENTER(device);
    READ(device, "remapped.corrected", corrected);
    READ(device, "remapped.uncorrected", uncorrected);
    READ(device, "remapped.pending", pending);
    READ(device, "remapped.failed", failed);
    return OK;
}
int nvmlDeviceGetEncoderUtilization(device_t *device, unsigned *out, unsigned *period) { ENTER(device); *period = 0; READ(device, "encoder", out); return OK; }
int nvmlDeviceGetDecoderUtilization(device_t *device, unsigned *out, unsigned *period) { ENTER(device); *period = 0; READ(device, "decoder", out); return OK; }
int nvmlDeviceGetPcieReplayCounter(device_t *device, unsigned *out) { ENTER(device); READ(device, "pcie_replays", out); return OK; }
int nvmlDeviceGetCurrPcieLinkGeneration(device_t *device, unsigned *out) { ENTER(device); READ(device, "pcie.generation", out); return OK; }
int nvmlDeviceGetMaxPcieLinkGeneration(device_t *device, unsigned *out) { ENTER(device); READ(device, "pcie.generation_max", out); return OK; }
int nvmlDeviceGetCurrPcieLinkWidth(device_t *device, unsigned *out) { ENTER(device); READ(device, "pcie.width", out); return OK; }
int nvmlDeviceGetMaxPcieLinkWidth(device_t *device, unsigned *out) { ENTER(device); READ(device, "pcie.width_max", out); return OK; }
int nvmlDeviceGetPcieThroughput(device_t *device, unsigned counter, unsigned *out) {
    ENTER(device);
    READ(device, counter ? "pcie_rx_kb" : "pcie_tx_kb", out);
    usleep(20000);
    return OK;
}

typedef struct {
    unsigned field, scope;
    long long timestamp, latency;
    unsigned type, code;
    unsigned long long value;
} field_value_t;
int nvmlDeviceGetFieldValues(device_t *device, int count, field_value_t *rows) {
    ENTER(device);
    for (int place = 0; place < count; place++) {
        char key[32];
        double value = 0;
        snprintf(key, sizeof key, "field.%u", rows[place].field);
        rows[place].code = (unsigned)number(device, key, &value);
        rows[place].type = 3;
        rows[place].value = (unsigned long long)value;
    }
    return OK;
}

typedef struct { unsigned pid; unsigned long long bytes; unsigned gpu_instance, compute_instance; } process_row_t;
int nvmlDeviceGetComputeRunningProcesses_v3(device_t *device, unsigned *count, process_row_t *rows) {
    ENTER(device);
    unsigned room = *count;
    *count = (unsigned)device->process_count;
    if (room < *count)
        return INSUFFICIENT_SIZE;
    for (int place = 0; place < device->process_count; place++) {
        rows[place].pid = device->processes[place].pid;
        rows[place].bytes = device->processes[place].bytes;
    }
    return OK;
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(device_t *device, unsigned *count, process_row_t *rows) {
    ENTER(device);
    (void)rows;
    *count = 0;
    return OK;
}

static int event_set, gpm_sample[2];
int nvmlEventSetCreate(void **out) { ENTER(NULL); *out = &event_set; return OK; }
int nvmlEventSetFree(void *set) { ENTER(NULL); (void)set; return OK; }
int nvmlDeviceRegisterEvents(device_t *device, unsigned long long kinds, void *set) { ENTER(device); (void)kinds; (void)set; return OK; }

typedef struct { device_t *device; unsigned long long kind, data; unsigned gpu_instance, compute_instance; } event_t;
int nvmlEventSetWait_v2(void *set, event_t *out, unsigned milliseconds) {
    (void)set;
    (void)milliseconds;
    ENTER(NULL);
    rule_t rules[MOST_RULES];
    int count = read_rules(rules), seen = 0;
    for (int place = 0; place < count; place++) {
        if (strcmp(rules[place].action, "xid") || seen++ < xids_delivered)
            continue;
        xids_delivered++;
        for (int index = 0; index < device_count; index++)
            if (!strcmp(devices[index].uuid, rules[place].uuid))
                out->device = &devices[index];
        out->kind = 8;
        out->data = strtoull(rules[place].function, NULL, 10);
        return OK;
    }
    return TIMED_OUT;
}

typedef struct { unsigned version, supported; } gpm_support_t;
typedef struct { unsigned id, code; double value; char *names[3]; } gpm_metric_t;
typedef struct { unsigned version, count; void *first, *second; gpm_metric_t metrics[1]; } gpm_request_t;
static device_t *gpm_device;
int nvmlGpmQueryDeviceSupport(device_t *device, gpm_support_t *out) {
    ENTER(device);
    out->supported = find(device, "gpm.2") || find(device, "gpm.supported");
    return OK;
}
int nvmlGpmSampleAlloc(void **out) { ENTER(NULL); *out = gpm_sample; return OK; }
int nvmlGpmSampleFree(void *sample) { ENTER(NULL); (void)sample; return OK; }
int nvmlGpmSampleGet(device_t *device, void *sample) {
    ENTER(device);
    (void)sample;
    gpm_device = device;
    return find(device, "gpm.2") ? OK : NOT_SUPPORTED;
}
int nvmlGpmMigSampleGet(device_t *device, unsigned instance, void *sample) {
    ENTER(device);
    (void)sample;
    for (int place = 0; place < device_count; place++) {
        double id = -1;
        if (devices[place].parent == device - devices && !number(&devices[place], "gpu_instance", &id) && id == instance) {
            gpm_device = &devices[place];
            return OK;
        }
    }
    return NOT_FOUND;
}
int nvmlGpmMetricsGet(gpm_request_t *request) {
    ENTER(gpm_device);
    for (unsigned place = 0; place < request->count; place++) {
        char key[32];
        snprintf(key, sizeof key, "gpm.%u", request->metrics[place].id);
        request->metrics[place].code = (unsigned)number(gpm_device, key, &request->metrics[place].value);
    }
    return OK;
}
