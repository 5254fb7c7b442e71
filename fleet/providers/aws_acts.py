"""What EC2 is asked to do. Each is safe to ask twice: a launch by its client token, the rest because EC2 accepts what is so already."""

from __future__ import annotations

from typing import Any

from fleet.providers.aws_errors import NO_INSTANCE, code_of
from fleet.providers.aws_reads import row_of
from fleet.providers.base import CreateSpec, Market
from fleet.providers.errors import Invalid
from fleet.providers.orders import key_name, limit_on_spot

LAUNCH_TAG = "rackrent-launch"


def terminate(ec2: Any, instance_id: str) -> None:
    """A persistent spot request would put a new machine in the place of the ended one: it is cancelled first."""
    from botocore.exceptions import ClientError

    row = row_of(ec2, instance_id)
    if row is None:
        return
    if request := row.get("SpotInstanceRequestId"):
        ec2.cancel_spot_instance_requests(SpotInstanceRequestIds=[request])
    try:
        ec2.terminate_instances(InstanceIds=[instance_id])
    except ClientError as error:
        if code_of(error) != NO_INSTANCE:
            raise


def launch(ec2: Any, spec: CreateSpec, token: str) -> str:
    """The id of the machine that EC2 made, or made before for the same token."""
    if not spec.image_id:
        raise Invalid("EC2 starts a machine from an image: name one, as in ami-0abcdef1234567890.")
    limit_on_spot(spec, "Amazon EC2")
    arguments: dict[str, Any] = {
        "ImageId": spec.image_id,
        "InstanceType": spec.offer_id,
        "MinCount": 1,
        "MaxCount": 1,
        "ClientToken": token,
        "TagSpecifications": [{"ResourceType": kind, "Tags": tags_of(spec, token)} for kind in ("instance", "volume")],
    }
    if spec.market is Market.SPOT:
        arguments["InstanceMarketOptions"] = {"MarketType": "spot", "SpotOptions": spot_options(spec)}
    if spec.disk_gb:
        arguments["BlockDeviceMappings"] = [root_disk(ec2, spec)]
    if spec.ssh_public_key:
        arguments["KeyName"] = key_pair(ec2, spec.ssh_public_key)
    if spec.user_data:
        arguments["UserData"] = spec.user_data
    instance_id: str = ec2.run_instances(**arguments)["Instances"][0]["InstanceId"]
    return instance_id


def tags_of(spec: CreateSpec, token: str) -> list[dict[str, str]]:
    tags = {**spec.labels, "Name": spec.name, LAUNCH_TAG: token}
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def spot_options(spec: CreateSpec) -> dict[str, str]:
    options = {"SpotInstanceType": "one-time"}
    if spec.max_price_per_hour is not None:
        options["MaxPrice"] = f"{spec.max_price_per_hour:f}"
    return options


def root_disk(ec2: Any, spec: CreateSpec) -> dict[str, Any]:
    """The mapping that resizes the image's root volume; its device name lies in the image."""
    images = ec2.describe_images(ImageIds=[spec.image_id])["Images"]
    if not images or not images[0].get("RootDeviceName"):
        raise Invalid(f"The image {spec.image_id} names no root disk that could be made {spec.disk_gb} GB.")
    return {"DeviceName": images[0]["RootDeviceName"], "Ebs": {"VolumeSize": spec.disk_gb, "DeleteOnTermination": True}}


def key_pair(ec2: Any, public_key: str) -> str:
    """The name of EC2's copy of a key, made where it is new."""
    from botocore.exceptions import ClientError

    name = key_name(public_key)
    try:
        ec2.import_key_pair(KeyName=name, PublicKeyMaterial=public_key.encode())
    except ClientError as error:
        if code_of(error) != "InvalidKeyPair.Duplicate":
            raise
    return name


def save_image(ec2: Any, instance_id: str, name: str) -> str:
    """Without a reboot: what runs goes on, and the disks are saved as a power cut would leave them."""
    image_id: str = ec2.create_image(InstanceId=instance_id, Name=name, NoReboot=True)["ImageId"]
    return image_id
