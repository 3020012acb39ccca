"""deploy/k8s as kubectl kustomize renders it: Kubernetes' schemas, and rules that every pod keeps.

Runs by the Python of a folder with deploy/k8s/requirements.txt: $K8S_TOOLS, else .deps/k8s.
Without one it is skipped: exit status 77.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
K8S = ROOT / "deploy" / "k8s"
RENDERED = {"base": K8S / "base", **{name: K8S / "overlays" / name
                                     for name in ("gpu", "jobset", "keda")}}
UID, SKIPPED = 10001, 77


def tools():
    folder = pathlib.Path(os.environ.get("K8S_TOOLS") or ROOT / ".deps" / "k8s")
    return folder if (folder / "bin" / "kubectl").exists() else None


def switch_to(folder):
    python = folder / "bin" / "python"
    if pathlib.Path(sys.prefix) != folder:
        os.execv(python, [str(python), "-B", *sys.argv])


def render(path, cache={}):  # noqa: B006
    """The objects of a kustomization, defaults that kubectl adds none."""
    import yaml
    if path not in cache:
        done = subprocess.run([tools() / "bin" / "kubectl", "kustomize", path], timeout=60,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"kubectl kustomize {path}: {done.stderr}")
        cache[path] = [thing for thing in yaml.safe_load_all(done.stdout) if thing]
    return cache[path]


def named(things, kind, name):
    found = [thing for thing in things
             if thing["kind"] == kind and thing["metadata"]["name"] == name]
    if len(found) != 1:
        raise AssertionError(f"{len(found)} objects {kind}/{name}")
    return found[0]


def templates(things):
    """(name, pod template) of all that makes pods."""
    for thing in things:
        where = f"{thing['kind']}/{thing['metadata']['name']}"
        if thing["kind"] in ("StatefulSet", "Deployment"):
            yield where, thing["spec"]["template"]
        for job in thing["spec"].get("replicatedJobs", []) if thing["kind"] == "JobSet" else []:
            yield f"{where}/{job['name']}", job["template"]["spec"]["template"]


def variables(container):
    return {variable["name"]: variable.get("value") for variable in container["env"]}


def option_names():
    """Options as variables: those of docs/options.md."""
    rows = re.findall(r"^\| `--([a-z0-9-]+)`", (ROOT / "docs" / "options.md").read_text(), re.M)
    return {"TETRION_" + name.upper().replace("-", "_") for name in rows}


class EveryRendering(unittest.TestCase):
    where = ""

    def _formatMessage(self, msg, standard):  # noqa: N802
        return f"{self.where}: {super()._formatMessage(msg, standard)}"

    def each(self):
        for name, path in RENDERED.items():
            self.where = name
            yield name, render(path)

    def each_pod(self):
        for name, things in self.each():
            pods = list(templates(things))
            self.assertEqual(len(pods), 3)
            for where, pod in pods:
                self.where = f"{name}: {where}"
                yield pod["spec"]

    def each_container(self):
        for pod in self.each_pod():
            for container in pod["containers"]:
                yield pod, container

    def test_fits_the_schemas_strictly(self):
        import kubernetes_validate
        for _, things in self.each():
            for thing in things:
                try:
                    kubernetes_validate.validate(thing, "1.37", strict=True)
                except kubernetes_validate.SchemaNotFoundError:
                    self.assertIn(thing["kind"], ("JobSet", "PodMonitor", "ScaledObject"))

    def test_pod_templates_inside_custom_resources_fit_the_schema_of_a_job(self):
        import kubernetes_validate
        jobset = named(render(RENDERED["jobset"]), "JobSet", "run")
        for job in jobset["spec"]["replicatedJobs"]:
            kubernetes_validate.validate(
                {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": job["name"]},
                 "spec": job["template"]["spec"]}, "1.37", strict=True)

    def test_no_pod_runs_as_root_or_with_a_token(self):
        for pod in self.each_pod():
            security = pod["securityContext"]
            self.assertIs(security["runAsNonRoot"], True)
            self.assertEqual((security["runAsUser"], security["runAsGroup"], security["fsGroup"]),
                             (UID, UID, UID))
            self.assertEqual(security["seccompProfile"], {"type": "RuntimeDefault"})
            self.assertIs(pod["automountServiceAccountToken"], False)
            self.assertIs(pod["enableServiceLinks"], False)
            for key in ("hostNetwork", "hostPID", "hostIPC"):
                self.assertNotIn(key, pod)

    def test_no_container_may_gain_or_write_what_it_need_not(self):
        for _, container in self.each_container():
            self.assertEqual(container["securityContext"],
                             {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                              "capabilities": {"drop": ["ALL"]}})
            self.assertIn("memory", container["resources"]["limits"])
            self.assertIn("cpu", container["resources"]["requests"])

    def test_secrets_are_readable_by_their_owner_alone_and_mounted_read_only(self):
        for pod in self.each_pod():
            secrets = {v["name"]: v["secret"] for v in pod["volumes"] if "secret" in v}
            self.assertTrue(secrets)
            for secret in secrets.values():
                self.assertEqual(secret["defaultMode"], 0o400)
            for container in pod["containers"]:
                for mount in container["volumeMounts"]:
                    if mount["name"] in secrets:
                        self.assertIs(mount["readOnly"], True)
                self.assertIn("TETRION_CURVE_KEY", variables(container))
                self.assertNotIn("TETRION_INSECURE", variables(container))

    def test_there_is_more_time_to_end_than_a_drain_takes(self):
        for pod, container in self.each_container():
            drain_s = int(variables(container)["TETRION_DRAIN_TIMEOUT"])
            self.assertGreater(pod["terminationGracePeriodSeconds"], drain_s + 10)

    def test_life_is_asked_of_livez_and_readiness_of_readyz_at_a_named_port(self):
        for _, container in self.each_container():
            ports = {port["name"]: port["containerPort"] for port in container["ports"]}
            for probe, page in (("startupProbe", "/livez"), ("livenessProbe", "/livez"),
                                ("readinessProbe", "/readyz")):
                asked = container[probe]["httpGet"]
                self.assertEqual(asked["path"], page)
                bound = variables(container)["TETRION_HTTP_BIND"]
                self.assertEqual(bound, f"0.0.0.0:{ports[asked['port']]}")

    def test_every_variable_is_an_option(self):
        known = option_names()
        for _, things in self.each():
            settings = named(things, "ConfigMap", "run")["data"]
            names = set(settings)
            for _, pod in templates(things):
                for container in pod["spec"]["containers"]:
                    names |= set(variables(container))
            self.assertEqual(names - known, set())

    def test_traffic_is_denied_but_for_what_is_named(self):
        for _, things in self.each():
            deny = named(things, "NetworkPolicy", "default-deny")["spec"]
            self.assertEqual(deny["policyTypes"], ["Ingress", "Egress"])
            self.assertNotIn("ingress", deny)
            self.assertNotIn("egress", deny)
            ports = {port["port"] for name in ("coordinator", "learner")
                     for rule in named(things, "NetworkPolicy", name)["spec"]["ingress"]
                     for port in rule["ports"]}
            self.assertEqual(ports, {"control", "rows"})

    def test_policies_select_pods_of_runs_alone(self):
        for _, things in self.each():
            for thing in things:
                if thing["kind"] != "NetworkPolicy":
                    continue
                labels = thing["spec"]["podSelector"].get("matchLabels", {})
                self.assertEqual(labels.get("app.kubernetes.io/name"), "tetrion", thing)

    def test_every_scraped_port_has_a_job_that_alerts_know(self):
        alerts = (ROOT / "deploy" / "prometheus" / "alerts.yml").read_text()
        known = set(re.search(r'job=~"([a-z|]+)"', alerts)[1].split("|"))
        for _, things in self.each():
            components = {pod["metadata"]["labels"]["app.kubernetes.io/component"]
                          for _, pod in templates(things)}
            ends = named(things, "PodMonitor", "tetrion")["spec"]["podMetricsEndpoints"]
            for end in ends:
                [job] = [rule for rule in end["relabelings"] if rule["targetLabel"] == "job"]
                if "replacement" in job:
                    self.assertIn(job["replacement"], known)
                    continue
                self.assertEqual(job["sourceLabels"],
                                 ["__meta_kubernetes_pod_label_app_kubernetes_io_component"])
                self.assertLessEqual(components, known)

    def test_pods_that_mount_the_volume_stand_on_one_node_whichever_comes_first(self):
        for _, things in self.each():
            for where, pod in templates(things):
                self.where = where
                mounts = any(volume.get("persistentVolumeClaim", {}).get("claimName") == "runs"
                             for volume in pod["spec"]["volumes"])
                label = pod["metadata"]["labels"].get("tetrion/volume")
                self.assertEqual(label, "runs" if mounts else None)
                if not mounts:
                    continue
                # A pod that fits its own term may be the first: no two wait for each other.
                [term] = pod["spec"]["affinity"]["podAffinity"][
                    "requiredDuringSchedulingIgnoredDuringExecution"]
                self.assertEqual(term["topologyKey"], "kubernetes.io/hostname")
                chosen = term["labelSelector"]["matchLabels"]
                self.assertEqual(chosen["tetrion/volume"], "runs")
                self.assertLessEqual(chosen.items(), pod["metadata"]["labels"].items())
                self.assertNotIn("app.kubernetes.io/component", chosen)

    def test_services_and_budgets_select_pods_that_are_there(self):
        for _, things in self.each():
            labels = [pod["metadata"]["labels"].items() for _, pod in templates(things)]
            for thing in things:
                chosen = thing.get("spec", {}).get("selector", {})
                chosen = chosen.get("matchLabels", chosen) if chosen else {}
                if thing["kind"] in ("Service", "PodDisruptionBudget"):
                    self.assertTrue(any(chosen.items() <= have for have in labels), thing)

    def test_no_overlay_has_an_autoscaler_of_its_own(self):
        for _, things in self.each():
            self.assertNotIn("HorizontalPodAutoscaler", {thing["kind"] for thing in things})


class EachOverlay(unittest.TestCase):
    def test_learner_and_its_actor_share_memory_of_a_bounded_size(self):
        pod = named(render(RENDERED["base"]), "StatefulSet", "learner")["spec"]["template"]["spec"]
        [shm] = [v["emptyDir"] for v in pod["volumes"] if v["name"] == "shm"]
        self.assertEqual(shm["medium"], "Memory")
        self.assertRegex(shm["sizeLimit"], r"^\d+Mi$")
        self.assertEqual([c["name"] for c in pod["containers"]], ["learner", "actor"])
        self.assertEqual(variables(pod["containers"][1])["TETRION_ROWS"], "shm")
        for container in pod["containers"]:
            self.assertIn({"name": "shm", "mountPath": "/shm"}, container["volumeMounts"])

    def test_actors_of_other_nodes_send_their_rows_to_where_the_learner_listens(self):
        things = render(RENDERED["base"])
        actor = named(things, "Deployment", "actor")["spec"]["template"]["spec"]["containers"][0]
        self.assertEqual(variables(actor)["TETRION_ROWS"], "tcp")
        learner = named(things, "StatefulSet", "learner")["spec"]["template"]["spec"]
        told = variables(learner["containers"][0])["TETRION_ROWS_ADVERTISE"]
        service = named(things, "Service", "learner")
        self.assertEqual(told, f"learner:{service['spec']['ports'][0]['port']}")

    def test_gpu_gives_the_learner_one_device_and_its_image(self):
        pod = named(render(RENDERED["gpu"]), "StatefulSet", "learner")["spec"]["template"]["spec"]
        learner, actor = pod["containers"]
        self.assertEqual(learner["resources"]["limits"]["nvidia.com/gpu"], "1")
        self.assertEqual(variables(learner)["TETRION_DEVICE"], "cuda")
        self.assertTrue(learner["image"].startswith("tetrion/learner-cuda:"))
        self.assertNotIn("nvidia.com/gpu", actor["resources"]["limits"])

    def test_gpu_keeps_its_learner_where_the_images_of_the_base_have_other_names(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "k8s"
            shutil.copytree(K8S, copy)
            base = copy / "base" / "kustomization.yaml"
            text, count = re.subn(r"\{name: tetrion/(\w+), newTag: local\}",
                                  r"{name: tetrion/\1, newName: registry/\1, newTag: v1}",
                                  base.read_text())
            self.assertEqual(count, 3)
            base.write_text(text)
            things = render(copy / "overlays" / "gpu")
        images = {container["name"]: container["image"] for _, pod in templates(things)
                  for container in pod["spec"]["containers"]}
        self.assertEqual(images, {"coordinator": "registry/coordinator:v1",
                                  "actor": "registry/actor:v1",
                                  "learner": "tetrion/learner-cuda:local"})

    def test_a_node_is_emptied_by_the_documented_commands(self):
        guide = (ROOT / "docs" / "KUBERNETES.md").read_text()
        [commands] = re.findall(r"kubectl cordon NODE\n(.*?)```", guide, re.DOTALL)
        deleted, drained = (line.split() for line in commands.strip().splitlines())
        self.assertEqual(drained[:3], ["kubectl", "drain", "NODE"])
        self.assertEqual(deleted[:3], ["kubectl", "delete", "pod"])
        things = render(RENDERED["base"])
        kept = [thing["metadata"]["name"] for thing in things
                if thing["kind"] == "PodDisruptionBudget"
                and thing["spec"].get("maxUnavailable") == 0]
        self.assertEqual(sorted(deleted[3:]),
                         sorted(named(things, "StatefulSet", name)["metadata"]["name"] + "-0"
                                for name in kept))

    def test_jobset_has_succeeded_when_the_coordinator_has_ended(self):
        things = render(RENDERED["jobset"])
        spec = named(things, "JobSet", "run")["spec"]
        self.assertEqual(spec["successPolicy"],
                         {"operator": "All", "targetReplicatedJobs": ["coordinator"]})
        # A pod that is deleted drains and succeeds: a member's job must start another then.
        for job in spec["replicatedJobs"]:
            pods = job["template"]["spec"]
            if job["name"] == "coordinator":
                self.assertEqual((pods["parallelism"], pods["completions"]), (1, 1))
            else:
                self.assertGreater(pods["completions"], 10 * pods["parallelism"], job["name"])
        self.assertTrue(named(things, "ConfigMap", "run")["data"]["TETRION_STOP_AFTER"])
        self.assertFalse({thing["kind"] for thing in things} & {"StatefulSet", "Deployment"})

    def test_keda_alone_decides_the_number_of_actors(self):
        things = render(RENDERED["keda"])
        self.assertNotIn("replicas", named(things, "Deployment", "actor")["spec"])
        spec = named(things, "ScaledObject", "actor")["spec"]
        self.assertEqual(spec["scaleTargetRef"]["name"], "actor")
        slots = int(named(things, "ConfigMap", "run")["data"]["TETRION_MAX_WORKERS"])
        pod = named(things, "StatefulSet", "learner")["spec"]["template"]["spec"]
        own = int(variables(pod["containers"][1])["TETRION_WORKERS"])
        self.assertEqual(spec["maxReplicaCount"], slots - own)
        [trigger] = spec["triggers"]
        query = trigger["metadata"]["query"]
        catalog = (ROOT / "lib" / "metrics" / "catalog_table.h").read_text()
        for metric in re.findall(r"\btetrion_\w+", query):
            self.assertIn(f'"{metric}"', catalog)
        self.assertIn('reason=~"token|ring"', query)
        # An empty answer is an error, not 0: then `fallback` decides, which takes no actor away.
        self.assertEqual(trigger["metadata"]["ignoreNullValues"], "false")
        self.assertEqual(spec["fallback"]["behavior"], "currentReplicasIfHigher")


if __name__ == "__main__":
    FOLDER = tools()
    if FOLDER is None:
        print("skipped: install deploy/k8s/requirements.txt as it says (it needs PyPI)")
        sys.exit(SKIPPED)
    switch_to(FOLDER)
    unittest.main(verbosity=2)
