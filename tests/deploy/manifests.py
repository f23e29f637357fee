"""deploy/kubernetes by kubectl and kubernetes-validate, envoy.yaml by Envoy's own structures, compose.yaml by PyYAML; and the commands that the first and
the last start, started."""
import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from epd_by_hand import Redis, instances, listens
from epd_fleet import free_port

import harness
import serving
import wire
from serving import TEXT_MODEL, wait_until

DEPLOY = serving.ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
SECRETS = {"fleet-secret": "f" * 64, "redis-password": "e" * 64}
INSTANCES = ("encode", "decode")
DRAIN = 30  # s: --shutdown-timeout
HTTP, ROWS, REDIS = 8000, 9000, 6379
# Who talks to whom, at which ports. Everything else is refused.
TALKS = {("encode", "decode", HTTP), ("decode", "encode", HTTP), ("encode", "encode", HTTP), ("decode", "decode", HTTP),
         ("encode", "decode", ROWS), ("decode", "encode", ROWS), ("encode", "encode", ROWS), ("decode", "decode", ROWS),
         ("proxy", "encode", HTTP), ("proxy", "decode", HTTP), ("encode", "redis", REDIS), ("decode", "redis", REDIS), ("proxy", "redis", REDIS)}


def need_modules(*names):
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        raise harness.Skip(f"needs {', '.join(missing)} (tests/deploy/requirements.txt)")


# ---- Kubernetes

@contextlib.contextmanager
def kustomization():
    """A copy of the folder with secrets, which the repository has none of."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "kubernetes"
        shutil.copytree(KUBERNETES, copy, ignore=shutil.ignore_patterns(*SECRETS))
        for name, content in SECRETS.items():
            (copy / name).write_text(content, encoding="utf-8")
        yield copy


def kustomized(folder):
    """What kubectl makes of it."""
    program = shutil.which("kubectl")
    if program is None:
        raise harness.Skip("needs kubectl (Debian: kubernetes-client)")
    done = subprocess.run([program, "kustomize", str(folder)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_schemas(text):
    """By kubernetes-validate. Whatever it warns of is an error: a kind that it does not know is not checked at all."""
    need_modules("kubernetes_validate")
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([sys.executable, "-m", "kubernetes_validate", "--strict", file.name], capture_output=True, text=True)
    said = done.stdout + done.stderr
    assert done.returncode == 0 and "WARN" not in said and "INFO" in said, said
    return said.count("passed for resource")


def objects():
    need_modules("yaml")
    import yaml

    with kustomization() as folder:
        return [one for one in yaml.safe_load_all(kustomized(folder)) if one]


def of_kind(found, kind):
    return {one["metadata"]["name"]: one for one in found if one["kind"] == kind}


def manifests_have_the_schemas_of_kubernetes(setup):
    with kustomization() as folder:
        text = kustomized(folder)
    setup.say(f"{check_schemas(text)} objects")
    unknown = text + "---\napiVersion: v1\nkind: Frobnicator\nmetadata: {name: x}\n"
    misspelt = text.replace("readinessProbe:", "readynessProbe:", 1)
    for wrong in (unknown, misspelt):
        with contextlib.suppress(AssertionError):
            check_schemas(wrong)
            raise ValueError("what is wrong is found right")


def without_secrets_nothing_is_made(setup):
    with kustomization() as folder:
        kustomized(folder)
        (folder / "fleet-secret").unlink()
        with contextlib.suppress(AssertionError):
            kustomized(folder)
            raise ValueError("a fleet without a secret")


def drain_seconds(container):
    """How long SIGTERM waits for what was taken."""
    return next((int(word.split("=")[1]) for word in container["args"] if word.startswith("--shutdown-timeout=")), DRAIN)


def check_pods_of(name, deployment, found):
    """No rights and no writable root; of a server of Transept also its probes, its end and what is before it."""
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] > 0 and not pod["automountServiceAccountToken"], name
    own = container["securityContext"]
    assert own["readOnlyRootFilesystem"] and not own["allowPrivilegeEscalation"] and own["capabilities"] == {"drop": ["ALL"]}, name
    assert container["resources"]["limits"]["memory"], name
    mounted = {one["name"] for one in container["volumeMounts"]}
    assert mounted == {one["name"] for one in pod["volumes"]}, name
    if name == "redis":
        return
    assert container["readinessProbe"]["httpGet"]["path"] == "/health/ready" and container["livenessProbe"]["httpGet"]["path"] == "/health/live"
    pause = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pause >= 2 * container["readinessProbe"]["periodSeconds"], name
    assert pod["terminationGracePeriodSeconds"] > pause + drain_seconds(container), name
    assert of_kind(found, "PodDisruptionBudget")[name]["spec"]["selector"] == deployment["spec"]["selector"], name
    assert of_kind(found, "Service")[name]["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"], name


def manifests_drain_probe_and_give_no_rights(setup):
    found = objects()
    assert {one["metadata"].get("namespace", "transept") for one in found} == {"transept"}
    for name, deployment in of_kind(found, "Deployment").items():
        check_pods_of(name, deployment, found)


def autoscalers_go_by_metrics_that_there_are(setup):
    """Each metric is one of the rules of prometheus-adapter, which ask for series that the server has."""
    need_modules("yaml")
    import yaml

    rules = {rule["name"]["as"]: rule for rule in yaml.safe_load((KUBERNETES / "prometheus-adapter.yaml").read_text())["rules"]["custom"]}
    found, asked = objects(), set()
    for name, scaler in of_kind(found, "HorizontalPodAutoscaler").items():
        assert scaler["spec"]["scaleTargetRef"]["name"] == name and "replicas" not in of_kind(found, "Deployment")[name]["spec"], name
        (metric,) = scaler["spec"]["metrics"]
        assert metric["type"] == "Pods", metric
        asked.add(metric["pods"]["metric"]["name"])
    assert asked == set(rules), (asked, set(rules))
    with Redis() as redis, instances(setup.binary, TEXT_MODEL, "1E1D", redis.url) as (encoders, decoders):
        encode, decode = (one.ask(wire.get("/metrics")).body.decode() for one in (*encoders, *decoders))
    assert re.search(r"^transept:num_requests_waiting\{", decode, re.M), "a decode instance has no such metric"
    if "transept_ec_" not in encode:
        raise harness.Skip("this binary has no metrics of encode instances")
    assert re.search(r"^transept_ec_queue_seconds_sum\b", encode, re.M), "an encode instance has no such metric"


def allowed(policies, source, target, port):
    """Whether the pods of a component may open a connection: both sides' policies have to say so."""
    def selects(selector, component):
        labels = {"app.kubernetes.io/name": "transept", "app.kubernetes.io/component": component}
        return (all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items()) and
                all(one["operator"] == "In" and labels.get(one["key"]) in one["values"] for one in selector.get("matchExpressions", [])))

    def says(kind, own, other):
        peers, ways = ("from", "ingress") if kind == "Ingress" else ("to", "egress")
        mine = [one["spec"] for one in policies if kind in one["spec"]["policyTypes"] and selects(one["spec"]["podSelector"], own)]
        return not mine or any(
            (not rule.get(peers) or any("podSelector" in peer and "namespaceSelector" not in peer and selects(peer["podSelector"], other)
                                        for peer in rule[peers])) and
            (not rule.get("ports") or any(one["port"] == port and one["protocol"] == "TCP" for one in rule["ports"]))
            for spec in mine for rule in spec.get(ways, []))

    return says("Egress", source, target) and says("Ingress", target, source)


def policies_let_the_fleet_talk_and_nobody_else(setup):
    policies = of_kind(objects(), "NetworkPolicy").values()
    names, ports = (*INSTANCES, "proxy", "redis", "other"), (HTTP, ROWS, REDIS, 22)
    got = {(source, target, port) for source in names for target in names for port in ports if allowed(policies, source, target, port)}
    # Clients of the namespace come to the proxy, but the fleet itself has no way there.
    assert got == TALKS, f"more {got - TALKS}, less {TALKS - got}"


def resolved(words, environment):
    """Arguments with $(NAME) as Kubernetes fills it in."""
    return [re.sub(r"\$\((\w+)\)", lambda name: environment[name[1]], word) for word in words]


@contextlib.contextmanager
def child(command, environment=None):
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **(environment or {})})
        try:
            yield process, lambda: os.pread(log.fileno(), 1 << 20, 0).decode(errors="replace")
        finally:
            process.terminate()
            try:
                process.wait(40)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def becomes_ready(port, process, log):
    def is_ready():
        assert process.poll() is None, log()
        with contextlib.suppress(OSError, wire.Cut):
            return wire.ask(port, wire.get("/health/ready")).status == 200
        return False

    assert wait_until(is_ready, serving.START_SECONDS, 0.05) is not None, log()


def fleet_answers(setup, stack, broker, commands):
    """Starts {name: (command for two ports)} and asks the proxy, whose name is last."""
    port = None
    for make in commands:
        port = free_port()
        process, log = stack.enter_context(child(make(port, free_port())))
        becomes_ready(port, process, log)
    with setup.serve() as one_process:
        wanted = one_process.complete("manifest").json()["choices"]
    assert wire.ask(port, wire.post("/v1/completions", {"prompt": "manifest"})).json()["choices"] == wanted


def the_containers_of_the_manifests_run(setup):
    """Their commands as they are, but for ports and places: with the password, and with the secret as Kubernetes gives it."""
    deployments = {name: one["spec"]["template"]["spec"]["containers"][0] for name, one in of_kind(objects(), "Deployment").items()}
    if shutil.which("redis-server") is None:
        raise harness.Skip("needs redis-server")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        for name, content in SECRETS.items():
            (Path(folder) / name).write_text(content, encoding="utf-8")
            (Path(folder) / name).chmod(0o440 if os.geteuid() == 0 else 0o400)
        redis_port = free_port()
        redis = deployments["redis"]
        script = redis["args"][0].replace("/run/secrets/fleet", folder).replace("--port 6379", f"--port {redis_port} --bind 127.0.0.1 --dir {folder}")
        process, log = stack.enter_context(child(["setsid", *redis["command"], script]))
        assert wait_until(lambda: listens(redis_port), 20, 0.05) is not None, log()
        stack.callback(lambda: subprocess.run(["redis-cli", "-p", str(redis_port), "shutdown", "nosave"], capture_output=True,
                                              env={**os.environ, "REDISCLI_AUTH": SECRETS["redis-password"]}))
        environment = {"MODEL": str(TEXT_MODEL), "REDIS_PASSWORD": SECRETS["redis-password"], "POD_IP": "127.0.0.1"}

        def command(name):
            def make(port, rows):
                words = resolved(deployments[name]["args"], {**environment, "POD_NAME": name})
                pairs = (("@redis:6379", f"@127.0.0.1:{redis_port}"), ("/run/secrets/fleet", folder), ("8000", str(port)), ("9000", str(rows)))
                for before, after in pairs:
                    words = [word.replace(before, after) for word in words]
                return [str(setup.binary), *words]

            return make

        fleet_answers(setup, stack, redis_port, [command(name) for name in (*INSTANCES, "proxy")])


# ---- Compose

def compose():
    need_modules("yaml")
    import yaml

    return yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))


def compose_is_of_the_same_image_and_publishes_the_proxy_alone(setup):
    services = compose()["services"]
    assert set(services) == {"secret", "redis", "encode", "decode", "proxy"}
    assert [name for name, one in services.items() if "ports" in one] == ["proxy"]
    assert services["proxy"]["ports"] == ["127.0.0.1:8000:8000"]
    for name, one in services.items():
        assert one["read_only"] and one["cap_drop"] == ["ALL"], name
        assert one["image"] == ("redis:7.0" if name == "redis" else "transept"), name
        for needed in one.get("depends_on", {}):
            assert needed in services, needed
    assert services["secret"]["build"] == {"context": "..", "dockerfile": "packaging/Containerfile"}
    image = (serving.ROOT / "packaging" / "Containerfile").read_text(encoding="utf-8")
    assert "libzmq5" in image and "libhiredis0.14" in image, "the image cannot run a fleet"


def the_services_of_compose_run(setup):
    services = compose()["services"]
    if shutil.which("redis-server") is None:
        raise harness.Skip("needs redis-server")

    def plain(word):  # as compose reads it
        return re.sub(r"\$\{(\w+):-([^}]*)\}", r"\2", word).replace("$$", "$")

    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        (Path(folder) / "transept").symlink_to(setup.binary)
        (Path(folder) / "g2p").symlink_to(TEXT_MODEL)
        (Path(folder) / "hostname").write_text("#!/bin/sh\necho 127.0.0.1\n", encoding="utf-8")
        (Path(folder) / "hostname").chmod(0o755)
        path = f"{folder}:{os.environ['PATH']}"

        def words_of(name, *pairs):
            words = [plain(word) for word in services[name].get("entrypoint", []) + services[name]["command"]]
            for before, after in (("/var/cache/transept", folder), *pairs):
                words = [word.replace(before, after) for word in words]
            return ["env", "-C", folder, f"PATH={path}", *words]

        for _ in range(2):  # the second time it is there
            subprocess.run(words_of("secret"), check=True)
        secret = Path(folder) / "fleet-secret"
        assert secret.stat().st_mode & 0o777 == 0o600 and len(secret.read_text().strip()) >= 40
        redis_port = free_port()
        process, log = stack.enter_context(child([*words_of("redis"), "--port", str(redis_port), "--bind", "127.0.0.1"]))
        assert wait_until(lambda: listens(redis_port), 20, 0.05) is not None, log()

        def command(name):
            def make(port, rows):
                words = words_of(name, ("redis://redis:6379", f"redis://127.0.0.1:{redis_port}"), (":8000", f":{port}"), (":9000", f":{rows}"))
                return [*words, "--port", str(port)]

            return make

        fleet_answers(setup, stack, redis_port, [command(name) for name in (*INSTANCES, "proxy")])


# ---- Envoy

def envoys_file_has_envoys_structures(setup):
    """Every field of it is one of Envoy's (v3), with a value of its type."""
    need_modules("yaml", "envoy", "google.protobuf")
    import yaml
    from envoy.config.bootstrap.v3 import bootstrap_pb2
    from envoy.extensions.filters.http.router.v3 import router_pb2  # noqa: F401  what Any may hold
    from envoy.extensions.filters.network.http_connection_manager.v3 import http_connection_manager_pb2  # noqa: F401
    from envoy.extensions.retry.host.previous_hosts.v3 import previous_hosts_pb2  # noqa: F401
    from google.protobuf import json_format

    document = yaml.safe_load((DEPLOY / "envoy.yaml").read_text(encoding="utf-8"))
    bootstrap = json_format.ParseDict(document, bootstrap_pb2.Bootstrap())
    (cluster,) = bootstrap.static_resources.clusters
    assert cluster.health_checks[0].http_health_check.path == "/health/ready" and cluster.lb_policy == cluster.LEAST_REQUEST
    (listener,) = bootstrap.static_resources.listeners
    manager = http_connection_manager_pb2.HttpConnectionManager()
    assert listener.filter_chains[0].filters[0].typed_config.Unpack(manager)
    routes = manager.route_config.virtual_hosts[0].routes
    assert routes[-1].route.cluster == cluster.name and all(one.direct_response.status == 404 for one in routes[:-1])
    assert cluster.load_assignment.cluster_name == cluster.name
    for path, value in ((("clusters", 0, "lb_polcy"), "LEAST_REQUEST"), (("listeners", 0, "name"), 3)):
        wrong = yaml.safe_load((DEPLOY / "envoy.yaml").read_text(encoding="utf-8"))
        place = wrong["static_resources"]
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        with contextlib.suppress(json_format.ParseError):
            json_format.ParseDict(wrong, bootstrap_pb2.Bootstrap())
            raise AssertionError(f"{path} is found right")


CASES = (manifests_have_the_schemas_of_kubernetes, without_secrets_nothing_is_made, manifests_drain_probe_and_give_no_rights,
         autoscalers_go_by_metrics_that_there_are, policies_let_the_fleet_talk_and_nobody_else, the_containers_of_the_manifests_run,
         compose_is_of_the_same_image_and_publishes_the_proxy_alone, the_services_of_compose_run, envoys_file_has_envoys_structures)
