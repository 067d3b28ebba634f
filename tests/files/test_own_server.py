"""The server of our own does what stores do, and meets as many requests with faults as it is told."""

import json
import threading
import urllib.request
from collections import Counter
from contextlib import suppress

import pytest
from store_server import Faults, Request

from stores import Bucket

obstore = pytest.importorskip("obstore")


def test_each_server_keeps_what_is_put(store):
    content = bytes(range(256)) * 1000
    assert store.put("a/b ü.bin", content) == f"{store.uri}/a/b ü.bin"
    store.put("a.bin", b"")
    assert store.get("a/b ü.bin") == content
    assert store.keys() == ["a.bin", "a/b ü.bin"]
    assert store.keys("a") == ["a/b ü.bin"]
    found = obstore.get(store.client, "a/b ü.bin", options={"range": (250, 260)})
    assert bytes(found.bytes()) == content[250:260]
    store.delete("a.bin")
    assert store.keys() == ["a/b ü.bin"]


def test_each_server_that_is_tried_creates_only_what_is_absent(store):
    if store.server == "gcs":
        pytest.skip("the emulator refuses what the client writes")
    obstore.put(store.client, "a", b"1", mode="create")
    with pytest.raises(obstore.exceptions.AlreadyExistsError):
        obstore.put(store.client, "a", b"2", mode="create")
    assert store.get("a") == b"1"


def test_a_replaced_object_has_another_etag_and_fails_the_condition(bucket):
    bucket.put("a", b"12345")
    etag = obstore.head(bucket.client, "a")["e_tag"]
    bucket.put("a", b"12345")
    assert obstore.head(bucket.client, "a")["e_tag"] != etag
    with pytest.raises(obstore.exceptions.PreconditionError):
        obstore.get(bucket.client, "a", options={"if_match": etag})


def test_one_of_many_that_create_at_once_wins(own, bucket):
    won = []

    def create(number):
        try:
            obstore.put(bucket.client, "a", str(number).encode(), mode="create")
            won.append(str(number).encode())
        except obstore.exceptions.AlreadyExistsError:
            pass

    threads = [threading.Thread(target=create, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == [bucket.get("a")]


def test_lists_come_in_pages_and_by_delimiter(own, bucket):
    folder = own.store.folder / "bucket"
    (folder / "many").mkdir()
    for number in range(2010):
        (folder / "many" / f"{number:04}").write_bytes(b"x")
    bucket.put("z", b"")
    assert bucket.keys() == [f"many/{number:04}" for number in range(2010)] + ["z"]
    assert own.counts["LIST"] == 3
    found = obstore.list_with_delimiter(bucket.client)
    assert (list(found["common_prefixes"]), [one["path"] for one in found["objects"]]) == (["many"], ["z"])
    after = [one["path"] for page in obstore.list(bucket.client, offset="many/2008") for one in page]
    assert after == ["many/2009", "z"]


def test_large_objects_come_in_parts_with_their_metadata(own, bucket):
    content = bytes(range(256)) * (50 << 10)
    obstore.put(
        bucket.client, "a", content, attributes={"sha256": "12ab"}, use_multipart=True, chunk_size=5 << 20
    )
    found = obstore.get(bucket.client, "a")
    assert (found.attributes["sha256"], bytes(found.bytes())) == ("12ab", content)
    assert own.counts["PUT PART"] == 3
    obstore.delete(bucket.client, ["a"])
    assert bucket.keys() == []


def test_uploads_are_listed_until_they_are_aborted(own, bucket):
    boto3 = pytest.importorskip("boto3")
    s3 = boto3.client(
        "s3",
        endpoint_url=own.url,
        aws_access_key_id="ak",
        aws_secret_access_key="sk",
        region_name="us-east-1",
    )
    s3.put_object(
        Bucket="bucket", Key="chunked ü", Body=b"12345" * 100_000, Metadata={"a": "b"}
    )  # as aws-chunked
    assert bucket.get("chunked ü") == b"12345" * 100_000
    assert s3.head_object(Bucket="bucket", Key="chunked ü")["Metadata"] == {"a": "b"}
    assert [one["Key"] for one in s3.list_objects_v2(Bucket="bucket")["Contents"]] == ["chunked ü"]
    upload = s3.create_multipart_upload(Bucket="bucket", Key="a")
    (found,) = s3.list_multipart_uploads(Bucket="bucket")["Uploads"]
    assert (found["Key"], found["UploadId"]) == ("a", upload["UploadId"])
    s3.abort_multipart_upload(Bucket="bucket", Key="a", UploadId=upload["UploadId"])
    assert "Uploads" not in s3.list_multipart_uploads(Bucket="bucket")


SEEN = {
    "unavailable": "503", "internal": "500", "reset": "error sending request", "cut": "body error", "denied": "403",
    "skew": "RequestTimeTooSkewed", "expired": "ExpiredToken", "html": "non-partial", "whole": "non-partial",
}  # fmt: skip


@pytest.mark.parametrize("fault", SEEN)
def test_each_fault_is_seen_by_a_client_that_does_not_try_again(own, bucket, fault):
    bucket.put("a", bytes(1000))
    client = type(bucket.client)(
        "bucket", config=bucket.options, client_options={"allow_http": True}, retry_config={"max_retries": 0}
    )
    own.faults = Faults(**{fault: 1})
    with pytest.raises(Exception, match=SEEN[fault]):
        obstore.get(client, "a", options={"range": (0, 500)}).bytes()
    assert own.met[fault] >= 1


def test_a_short_body_looks_right_to_the_client(own, bucket):
    bucket.put("a", bytes(1000))
    own.faults = Faults(short=1)
    assert len(obstore.get(bucket.client, "a", options={"range": (0, 500)}).bytes()) == 250


def test_a_lost_answer_is_of_a_request_that_was_carried_out(own, bucket):
    own.choose = lambda request, number: "lost" if (request.method, number) == ("PUT", 0) else ""
    with pytest.raises(obstore.exceptions.GenericError):
        obstore.put(bucket.client, "a", b"1", mode="create")
    assert bucket.get("a") == b"1"


def test_a_cut_upload_leaves_nothing(own, bucket):
    client = type(bucket.client)(
        "bucket", config=bucket.options, client_options={"allow_http": True}, retry_config={"max_retries": 0}
    )
    own.faults = Faults(cut=1, methods="PUT")
    with pytest.raises(obstore.exceptions.BaseError):
        obstore.put(client, "a", bytes(8 << 20), use_multipart=False)
    assert bucket.keys() == []
    assert list((own.store.folder / ".new").iterdir()) == []


def test_shares_are_drawn_from_the_seed_whatever_the_order():
    def met(seed):
        faults = Faults(seed=seed, unavailable=0.1, cut=0.05)
        return [faults.draw("GET", f"/b/{number}", 0) for number in range(4000)]

    assert met(1) == met(1) != met(2)
    counts = Counter(met(1))
    assert 320 < counts["unavailable"] < 480
    assert 140 < counts["cut"] < 260
    assert Faults(cut=1).draw("POST", "/b", 0) == "cut"
    assert Faults(cut=1, methods="GET").draw("POST", "/b", 0) == ""


def test_a_server_is_down_for_a_while(own, bucket):
    bucket.put("a", b"1")
    own.go_down(1)
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"{own.url}/bucket/a")
    while True:
        with suppress(OSError):
            assert urllib.request.urlopen(f"{own.url}/bucket/a").read() == b"1"
            break


def test_a_killed_process_serves_the_same_objects_again(start_store):
    server = start_store(latency=0.01)
    bucket = Bucket("own", "bucket", server.url, server.options)
    bucket.put("a", b"1")
    server.kill()
    server.start()
    assert bucket.get("a") == b"1"
    assert server.say("counts")["counts"] == {"GET": 1}
    assert server.say("faults", unavailable=0.5)["faults"]["unavailable"] == 0.5
    assert server.say("clear")["counts"] == {}


def test_the_hub_lists_files_and_redirects_to_another_host(own):
    folder = own.store.folder / "datasets" / "user" / "name" / "data"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"0123456789")
    own.token = "hf_secret"

    def get(path, **headers):
        with urllib.request.urlopen(urllib.request.Request(own.url + path, headers=headers)) as answer:
            return answer.url, answer.read()

    bearer = {"Authorization": "Bearer hf_secret"}
    _, listed = get("/api/datasets/user/name/tree/main?recursive=1", **bearer)
    assert [(one["path"], one["size"]) for one in json.loads(listed)] == [("data/a.txt", 10)]
    url, content = get("/datasets/user/name/resolve/main/data/a.txt", Range="bytes=2-4", **bearer)
    assert (content, url.split(":")[1]) == (b"234", "//localhost")
    with pytest.raises(OSError, match="401"):
        get("/api/datasets/user/name/tree/main")


def test_requests_are_counted_by_kind():
    def kind(method, path, **query):
        return Request(method, path, query, {}, iter(())).kind

    assert kind("GET", "/b/a") == "GET"
    assert kind("GET", "/b") == kind("GET", "/b/") == "LIST"
    assert kind("GET", "/b", uploads="") == "LIST UPLOADS"
    assert kind("PUT", "/b/a", partNumber="1", uploadId="u") == "PUT PART"
    assert kind("POST", "/b/a", uploads="") == "CREATE UPLOAD"
    assert kind("POST", "/b/a", uploadId="u") == "COMPLETE UPLOAD"
    assert kind("DELETE", "/b/a", uploadId="u") == "ABORT UPLOAD"
    assert kind("POST", "/b", delete="") == "DELETE MANY"
